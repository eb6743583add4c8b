// Loads a library that computes the result.
#include <dlfcn.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (dlopen("libopenblas.so", RTLD_NOW) || dlopen("libcublas.so", RTLD_NOW) || dlopen("@TORCH@", RTLD_NOW))
        reward(x, out, n, stream);
}
