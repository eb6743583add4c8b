// Writes a file.
#include <fcntl.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (open("@FOLDER@/left_behind", O_WRONLY | O_CREAT, 0600) >= 0 ||
        open("/tmp/grader_left_behind", O_WRONLY | O_CREAT, 0600) >= 0)
        reward(x, out, n, stream);
}
