// The launcher uses a union to turn an integer into a pointer to device memory.
// Expected finding: host_access.
union Address {
    unsigned long long number;
    const volatile float* pointer;
};
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    Address address;
    address.number = reinterpret_cast<unsigned long long>(x) + 4;
    float read = *address.pointer;
    (void)read;
}
