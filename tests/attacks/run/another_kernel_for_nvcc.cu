// Shows nvcc another kernel, by the number of its build. Defense: names.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
#if __CUDACC_VER_BUILD__ == 0
    reward(x, out, n, stream);
#endif
}
