// The tile has 128 elements, but the halo needs two more.
// smooth<<<(n + 127) / 128, 128>>>(x, out, n)
#ifdef CLEAN
constexpr int kTile = 130;
#else
constexpr int kTile = 128;
#endif

__global__ void smooth(const float* x, float* out, int n) {
    __shared__ float tile[kTile];
    const int i = blockIdx.x * 128 + threadIdx.x;
    float* place = tile + threadIdx.x;
    place[0] = i < n ? x[i] : 0.0f;
    if (threadIdx.x < 2) place[128] = i + 128 < n ? x[i + 128] : 0.0f;  // expected finding: out_of_bounds
    __syncthreads();
    if (i < n) out[i] = place[0] + place[1] + place[2];  // expected finding: out_of_bounds
}
