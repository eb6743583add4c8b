// A launcher searches the stack for the runner's variables.
// Expected finding: not_its_stack.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile long local = n;
    auto place = reinterpret_cast<uintptr_t>(&local) + 4096;
    *reinterpret_cast<volatile long*>(place) = 0;
}
