// The launcher reads device memory by wmemcpy.
// Expected: the build is refused.
#include <wchar.h>
static wchar_t values[16];
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    static auto volatile copy = wmemcpy;
    copy(values, reinterpret_cast<const wchar_t*>(x), 16);
    reward(x, out, n, stream);
}
