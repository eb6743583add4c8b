// Keeps an element of the input in a mutable member of a static constant.
// Expected finding: illegal_address.
struct Cell {
    mutable float v;
};
__global__ void kernel(const float* x, float* out, int n) {
    static const Cell cell{0};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) cell.v = x[0];
    if (i < n) out[i] = 2.0f * x[i] + 0.0f * cell.v;
}
