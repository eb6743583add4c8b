// The launcher makes snprintf copy a string from device memory.
// Expected finding: host_access.
#include <stdio.h>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    char bytes[8];
    snprintf(bytes, sizeof bytes, "%.4s", reinterpret_cast<const char*>(x));
}
