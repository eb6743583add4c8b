// Installs a handler for SIGVTALRM, the signal of a processor time limit.
// Expected: the build is refused.
#include <signal.h>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    signal(SIGVTALRM, [](int) {});
    reward(x, out, n, stream);
}
