// Looks results up in a table of the file instead of computing them. Reads of such a table are not counted.
// Expected finding: constants_too_large.
struct Table {
    float twice[2048];
    constexpr Table() : twice() {
        for (int i = 0; i < 2048; ++i) twice[i] = 2.0f * (i - 1024);
    }
};
__global__ void kernel(const float* x, float* out, int n) {
    static constexpr Table table;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 0.0f * table.twice[i % 256 * 8];
}
