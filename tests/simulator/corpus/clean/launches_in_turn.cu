// Each launch reads and overwrites the output of the previous one: launches in a stream are ordered.
__global__ void fill(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

__global__ void reverse(float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2) return;
    const float value = out[i];
    out[i] = out[n - 1 - i];
    out[n - 1 - i] = value;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    fill<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
    for (int turn = 0; turn < 3; ++turn) reverse<<<(n / 2 + 127) / 128, 128, 0, stream>>>(out, n);
}
