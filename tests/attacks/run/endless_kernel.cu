// Loops forever in device code, with the simulator's watchdog timer disabled.
// Expected: the time limit stops it.
#include <sys/time.h>
#include <ctime>

__global__ void spin(float* out) {
    while (true) out[0] = 1.0f;
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    for (int i = 0; i < 64; ++i) timer_delete(reinterpret_cast<timer_t>(long(i)));
    spin<<<1, 32, 0, stream>>>(out);
}
