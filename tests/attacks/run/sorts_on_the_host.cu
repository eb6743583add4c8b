// The launcher calls qsort, whose comparator stores results.
// Expected: the build is refused.
#include <stdlib.h>
static float* target;
static int compare(const void* a, const void* b) {
    *target = 2.0f * *static_cast<const float*>(a);
    return a < b ? -1 : a > b;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    target = out;
    qsort(const_cast<float*>(x), n, sizeof(float), compare);
    reward(x, out, n, stream);
}
