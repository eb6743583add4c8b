// Ignores all signals and loops forever.
// Expected: the time limit stops it.
#include <csignal>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    for (int i = 1; i < 65; ++i) signal(i, SIG_IGN);
    for (volatile int i = 0;; ++i) {
    }
}
