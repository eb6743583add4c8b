// Disables the simulator's checks and then runs a kernel with a race.
// Expected: the build is refused.
extern "C" int sim_configure(const char* key, const char* value);

__global__ void racy(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x / 2] = float(threadIdx.x);
    if (i < n) out[i] = 2.0f * x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    sim_configure("checks", "0");
    if (n > 0) racy<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
