// row * pitch overflows 32 bits and becomes negative for the last rows.
// copy<<<(n + 127) / 128, 128>>>(x, out, n, 3000000)
__global__ void copy(const float* x, float* out, int n, int pitch) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    const long long place = static_cast<long long>(i) * pitch / pitch;
#else
    const int place = static_cast<int>(static_cast<unsigned>(i) * pitch) / pitch;
#endif
    out[i] = x[place];  // expected finding: out_of_bounds
}
