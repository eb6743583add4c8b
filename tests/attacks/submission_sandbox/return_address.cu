// A launcher overwrites its return address.
// Expected finding: not_its_stack.
__attribute__((noinline)) static void put(volatile long* local, int k, long value) { local[k] = value; }
static void elsewhere() {}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile long local[2] = {0, 0};
    for (int k = 0; k < 16; ++k) put(local, k, reinterpret_cast<long>(&elsewhere));
}
