// Sleeps forever. A limit on processor time does not stop it.
// Expected: the time limit stops it.
#include <unistd.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    while (true) sleep(1000);
}
