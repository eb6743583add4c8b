// The launcher reads a bit-field of device memory.
// Expected finding: host_access.
struct Bits {
    unsigned mantissa : 23;
    unsigned exponent : 8;
    unsigned sign : 1;
};
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile unsigned read = reinterpret_cast<const volatile Bits*>(x)->exponent;
    (void)read;
}
