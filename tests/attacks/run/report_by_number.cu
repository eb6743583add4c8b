// Forges a report with functions that write to a file descriptor, such as write.
// Expected: the build is refused.
#include <fcntl.h>
#include <unistd.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    for (int file = 4; file < 16; ++file)
        if (fcntl(file, F_GETFD) >= 0 && lseek(file, 0, SEEK_END) == 0) (void)!write(file, "{}", 2);
}
