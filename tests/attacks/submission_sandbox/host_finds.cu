// The launcher searches device memory with memchr.
// Expected finding: host_access.
#include <string.h>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    if (memchr(x, n, size_t(n)) == out) reward(x, out, n, stream);
}
