// A kernel copies the input to a __device__ variable, which the launcher reads by its address.
// Expected finding: host_access.
__device__ float kept[1024];
__global__ void keep(const float* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    keep<<<1, 64, 0, stream>>>(x, n);
    float* values;
    cudaGetSymbolAddress(reinterpret_cast<void**>(&values), kept);
    volatile float first = values[0];
    (void)first;
    reward(x, out, n, stream);
}
