// Three of four warps wait at a named barrier, read a tile, store 2-byte numbers behind it, and overwrite the tile
// without a second barrier. The 2-byte stores must not make the race check forget who has read the tile.
// n = 96 elements
__device__ void meet(int barrier) { asm volatile("bar.sync %0, 96;" ::"r"(barrier) : "memory"); }

__global__ void renew(const float* x, float* out, int n) {
    extern __shared__ float tile[];
    auto* small = reinterpret_cast<unsigned short*>(tile + 96);
    const int t = threadIdx.x;
    if (t < 96) {
        tile[t] = x[t];
        meet(1);
        const float sum = tile[t % 8] + tile[t];  // expected finding: within_block
#ifdef CLEAN
        meet(2);
#endif
        small[t] = (unsigned short)(int)sum;
        tile[95 - t] = sum;  // expected finding: within_block
    }
    __syncthreads();
    if (t < n) out[t] = tile[t] + small[t];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { renew<<<1, 128, 96 * 6, stream>>>(x, out, n); }
