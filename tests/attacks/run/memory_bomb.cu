// Uses up the machine's memory.
#include <cstdlib>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    for (long i = 0; i < (1L << 16); ++i) {
        char* part = static_cast<char*>(malloc(1 << 20));
        if (part == nullptr) break;
        for (int k = 0; k < (1 << 20); k += 4096) part[k] = 1;
    }
    abort();
}
