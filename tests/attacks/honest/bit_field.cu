// A kernel reads a bit-field of its input.
struct Bits {
    unsigned mantissa : 23;
    unsigned exponent : 8;
    unsigned sign : 1;
};
__device__ float read(const float* x, int) {
    Bits bits = *reinterpret_cast<const Bits*>(x);
    return __uint_as_float(bits.sign << 31 | bits.exponent << 23 | bits.mantissa);
}
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * read(x + i, i);
}
