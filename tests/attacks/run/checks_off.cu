// Disables the simulator's checks and then runs a kernel with a race.
// Expected: the build is refused.
extern "C" int sim_configure(const char* key, const char* value);

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    sim_configure("checks", "0");
    race(x, out, n, stream);
}
