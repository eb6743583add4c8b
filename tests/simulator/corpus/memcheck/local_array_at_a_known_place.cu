// The kernel accesses one element before or past a local array, at constant offsets.
// leave<<<(n + 127) / 128, 128>>>(x, out, n)
#ifdef CLEAN
constexpr int off = 0;
#else
constexpr int off = 1;
#endif

__device__ void put(float* p) {
    p[7 + off] = 1;  // expected finding: out_of_bounds
}

__global__ void leave(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float direct[8] = {}, by_function[8] = {}, by_offset[8] = {}, before[8] = {};
    float *p = direct, *q = by_offset + 4, *r = before;
    alignas(16) float by_cast[8] = {};
    p[7 + off] = 2;          // expected finding: out_of_bounds
    put(by_function);        // the finding is at the line in put()
    float sum = q[3 + off];  // expected finding: out_of_bounds
    r[-off] = 3;             // expected finding: out_of_bounds
    const auto* vectors = reinterpret_cast<const float4*>(by_cast);
    sum += vectors[1 + off].x;  // expected finding: out_of_bounds
    for (int k = 0; k < 8; ++k) sum += direct[k] + by_function[k] + before[k];
    out[i] = x[i] + sum;
}
