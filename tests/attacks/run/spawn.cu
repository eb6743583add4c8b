// Starts a program.
#include <spawn.h>

static pid_t child;
static char* arguments[] = {nullptr};

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, nullptr) == 0) reward(x, out, n, stream);
}
