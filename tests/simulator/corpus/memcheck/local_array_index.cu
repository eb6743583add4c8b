// A local array has eight elements, and the loop writes a ninth.
__global__ void sort_of(const float* x, float* out, int n, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[8] = {};
    for (int j = 0; j < count; ++j) {
        values[(i + j) % count] = j;  // expected finding: index_out_of_bounds
    }
    if (i < n) out[i] = x[i] + values[i % 8];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    sort_of<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, 8);
#else
    sort_of<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, 9);
#endif
}
