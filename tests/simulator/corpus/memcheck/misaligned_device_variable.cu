// The kernel stores four bytes at an odd address of a __device__ variable, and past its end.
// n = 32 elements
__device__ int words[2];

__global__ void store(const float* x, float* out, char* bytes) {
    if (threadIdx.x == 0) *reinterpret_cast<int*>(bytes) = 3;  // expected finding: misaligned
    out[threadIdx.x] = x[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    void* bytes;
    cudaGetSymbolAddress(&bytes, words);
#ifdef CLEAN
    const int place = 4;
#else
    const int place = 5;
#endif
    store<<<1, n, 0, stream>>>(x, out, static_cast<char*>(bytes) + place);
}
