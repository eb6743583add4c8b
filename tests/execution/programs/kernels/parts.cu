// One of two source files, with its own header, a macro from the command line, and code in an inactive #if.
#include <cstdio>

#include "parts.h"

#if 0
#include <torch/extension.h>
main() { asm("v_add_f32 v0"); }
#endif
#ifdef __HIP_PLATFORM_AMD__
#include <hip/hip_runtime.h>
#endif
#define UNUSED_COPY(to, from) asm volatile("cp.future.bulk %0, %1;" ::"r"(to), "l"(from))
#define KERNEL(name, factor) \
    __global__ void name(float* x) { x[threadIdx.x] = factor * twice(x[threadIdx.x]); }
#define LAUNCH(name, ...) name##_kernel<<<1, THREADS>>>(__VA_ARGS__)

KERNEL(triple_kernel, 3)

int main(int argc, char* argv[]) {
    Buffer x(THREADS);
    LAUNCH(triple, x.data);
    printf("%g %d %s\n", x.first(), argc, argv[argc - 1]);
}
