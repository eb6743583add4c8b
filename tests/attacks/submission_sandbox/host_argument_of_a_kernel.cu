// The copy constructor of a kernel's argument reads device memory on the host.
// Expected finding: host_access.
struct Argument {
    const float* from;
    float first;
    Argument(const float* x) : from(x), first(0) {}
    __host__ __device__ Argument(const Argument& other) : from(other.from), first(*other.from) {}
};
__global__ void kernel(Argument argument, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 0 * argument.first;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(Argument(x), x, out, n);
}
