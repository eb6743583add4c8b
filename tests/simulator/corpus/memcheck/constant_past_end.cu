// Entry 17 of a constant table with 16 entries is read. Compilers cannot know that the pointer is the table's.
// look_up<<<(n + 127) / 128, 128>>>(x, out, n)
__constant__ float table[16];

__global__ void look_up(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    const int entry = i % 16;
#else
    const int entry = i % 17;
#endif
    const float* place = (n > 0 ? table : x) + entry;
    out[i] = x[i] + *place;  // expected finding: out_of_bounds
}
