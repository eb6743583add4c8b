// Two threads each swap x[i][j] and x[j][i] in place.
// n = 1024, transpose<<<32, 32>>>(x, out, n); swap<<<32, 32>>>(out)
__global__ void transpose(const float* x, float* out, int n) {
    const int row = blockIdx.x, column = threadIdx.x;
    out[row * 32 + column] = x[row * 32 + column];
}

__global__ void swap(float* out) {
    const int row = blockIdx.x, column = threadIdx.x;
#ifdef CLEAN
    if (row >= column) return;
#endif
    const float value = out[row * 32 + column];       // expected finding: between_blocks
    out[row * 32 + column] = out[column * 32 + row];  // expected finding: between_blocks
    out[column * 32 + row] = value;                   // expected finding: between_blocks
}
