// A store of four elements begins two elements before the end of a shared array.
// n = 2, copy<<<1, 1>>>(x, out, n)
__global__ void copy(const float* x, float* out, int n) {
    __shared__ __align__(16) float tile[6];
    const float4 values = {x[0], x[1], 0, 0};
#ifdef CLEAN
    *reinterpret_cast<float4*>(&tile[0]) = values;
    const float* stored = &tile[0];
#else
    *reinterpret_cast<float4*>(&tile[4]) = values;  // expected finding: out_of_bounds
    const float* stored = &tile[4];
#endif
    for (int i = 0; i < n; ++i) out[i] = stored[i];
}
