// Hillis and Steele's scan with two buffers, and a tree reduction that stops when one warp remains.
// n = 256, scan<<<1, 256>>>(x, out, n)
__global__ void scan(const float* x, float* out, int n) {
    __shared__ float buffer[2][256];
    const int t = threadIdx.x;
    int now = 0;
    buffer[0][t] = x[t];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2, now ^= 1) {
        buffer[now ^ 1][t] = buffer[now][t] + (t >= step ? buffer[now][t - step] : 0.0f);
        __syncthreads();
    }
    const float mine = buffer[now][t];
    float* tree = buffer[now ^ 1];
    tree[t] = x[t];
    __syncthreads();
    for (int step = 128; step >= 32; step /= 2) {
        if (t < step) tree[t] += tree[t + step];
        __syncthreads();
    }
    if (t < 32) {
        float sum = tree[t];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
        if (t == 0) tree[0] = sum;
    }
    __syncthreads();
    out[t] = mine + tree[0];
}
