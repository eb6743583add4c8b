// A kernel calls memcpy through a function pointer, which bypasses the check of memcpy.
// Expected finding: illegal_address.
#include <string.h>
__global__ void there(void* data, const float* x) {
    void* (*volatile copy)(void*, const void*, size_t) = std::memcpy;
    copy(data, x, 8);
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    there<<<1, 1, 0, stream>>>(const_cast<long*>(simulators_data()), x);
}
