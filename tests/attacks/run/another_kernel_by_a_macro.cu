// Shows nvcc another kernel than the simulator, in whose headers alone threadIdx is a macro.
// Expected: the build is refused.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef threadIdx
    reward(x, out, n, stream);
#endif
}
