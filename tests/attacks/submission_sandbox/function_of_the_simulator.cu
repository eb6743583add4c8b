// A launcher calls an address in the middle of a simulator function.
// Expected finding: not_its_function.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    auto middle = reinterpret_cast<void (*)()>(reinterpret_cast<uintptr_t>(&cudaGetLastError) + 4);
    middle();
}
