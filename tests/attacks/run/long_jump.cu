// Jumps to an address that it wrote into a jmp_buf.
// Expected: the build is refused.
#include <setjmp.h>
static jmp_buf place;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    if (setjmp(place) == 0) longjmp(place, 1);
}
