// A constructor writes to the simulator's data while the library is loaded.
// Expected message: stopped.
static volatile long once = (*simulators_data() = 0);
