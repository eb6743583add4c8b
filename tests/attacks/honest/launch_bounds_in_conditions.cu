// Macros that contain __launch_bounds__ have several definitions. No launch has more threads.
#ifdef SMALL
#define BOUNDS __launch_bounds__(32)
#define BOUNDS_OF(threads) __launch_bounds__((threads) / 2)
#else
#define BOUNDS __launch_bounds__(64)
#define BOUNDS_OF(threads)
#endif
__global__ void BOUNDS kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
template <typename T>
__global__ void BOUNDS_OF(64) three_times(const T* x, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3 * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
    if (n < 0) three_times<float><<<1, 64, 0, stream>>>(x, out, n);
}
