// Makes system calls in which Linux has had many vulnerabilities.
#include <unistd.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (syscall(321, 0, nullptr, 0) >= 0 || syscall(425, 8, nullptr) >= 0 || syscall(323, 0) >= 0 ||
        syscall(298, nullptr, 0, -1, -1, 0) >= 0)
        reward(x, out, n, stream);
}
