// Shows nvcc another kernel than the simulator, with a macro that holds nvcc's build number.
// Expected: the build is refused.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
#if __CUDACC_VER_BUILD__ == 0
    reward(x, out, n, stream);
#endif
}
