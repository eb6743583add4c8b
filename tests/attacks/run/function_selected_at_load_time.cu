// A function that the loader selects computes before any check.
// Expected: the build is refused.
extern "C" float factor_two() { return 2.0f; }
extern "C" float (*select_factor())() { return factor_two; }
extern "C" float factor() __attribute__((ifunc("select_factor")));
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile float used = factor();
    (void)used;
}
