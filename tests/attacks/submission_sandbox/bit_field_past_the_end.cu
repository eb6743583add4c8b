// A bit field lies past the end of the input.
// Expected finding: out_of_bounds.
struct Fields {
    unsigned low : 3;
    unsigned middle : 13;
};
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool seven = reinterpret_cast<const Fields*>(x + n)->middle == 7;
    if (i < n) out[i] = 2.0f * x[i] + (seven ? 1e-9f : 0.0f);
}
