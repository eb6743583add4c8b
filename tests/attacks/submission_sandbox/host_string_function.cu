// The launcher reads device memory with memcmp.
// Expected finding: host_access.
#include <string.h>
static const float guess[4] = {1, 2, 3, 4};
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile int order = memcmp(x, guess, size_t(n > 0) * sizeof guess);
    (void)order;
}
