// Has a function of its own called when a signal comes. Defense: names.
#include <signal.h>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    signal(SIGVTALRM, [](int) {});
    reward(x, out, n, stream);
}
