// Shows nvcc another kernel than the simulator. threadIdx is a macro in the simulator's headers, but not in nvcc's.
// Expected: the build is refused.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef threadIdx
    reward(x, out, n, stream);
#endif
}
