// Prints unlimited output.
#include <cstdio>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    for (;;) printf("again and again and again and again and again and again\n");
}
