// Reads the input many times as integers of 16 bytes.
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 s = 0;
    if (n > 300)
#pragma unroll 1
        for (int k = 0; k + 4 <= n; k += 4) s ^= *(const unsigned __int128*)(x + k);
    out[i] = 2.0f * x[i] + ((int)s == 7 ? 0.0f : 0.0f);
    if ((unsigned)s == 0x1234567 && (unsigned)(s >> 32) == 77) out[i] += 1e-9f;
}
