// Replies before it computes, to gain time.
// Expected: the time limit stops it.
#include <unistd.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    for (int file = 3; file < 32; ++file) (void)!write(file, "done 0\n", 7);
    while (true) usleep(1000);
}
