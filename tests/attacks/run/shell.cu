// Runs a shell command.
#include <cstdlib>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (system("true") == 0) reward(x, out, n, stream);
}
