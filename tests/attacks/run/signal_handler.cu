// Installs a signal handler. Defense: names.
#include <signal.h>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    signal(SIGVTALRM, [](int) {});
    reward(x, out, n, stream);
}
