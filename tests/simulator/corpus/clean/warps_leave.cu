// Threads past the end exit early. No barrier waits for them, and masks contain only the remaining threads.
// n = 200, sums<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void sums(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned active = __ballot_sync(n - (i & ~31) >= 32 ? 0xffffffffu : (1u << n % 32) - 1, x[i] > 0);
    out[i] = __popc(active);
}
