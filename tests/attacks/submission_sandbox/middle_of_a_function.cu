// A launcher calls an address inside its own function, past the check at the function's start.
// Expected finding: not_its_function.
__attribute__((noinline)) static void put(volatile long* place) { *place = 0; }
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    long local;
    put(&local);
    auto middle = reinterpret_cast<void (*)(volatile long*)>(reinterpret_cast<uintptr_t>(&put) + 9);
    middle(&local);
}
