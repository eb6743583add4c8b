// Calls simulator functions that only code rewritten by the front end may call.
// Expected: the build is refused.
static long data;
static sim::RegisterGlobal whatever("data", &data, 1 << 20, sim::GlobalKind::device);
