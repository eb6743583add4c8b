// Kernels that launch kernels: a child runs when the grid that launched it has ended.
#include <cuda_runtime.h>

__global__ void child_kernel(int* out, int depth);

__global__ void parent_kernel(int* out, int depth) {
    if (threadIdx.x == 0) {
        out[depth] = depth + 1;
        if (depth < 3) child_kernel<<<1, 2>>>(out, depth + 1);
    }
}

__global__ void child_kernel(int* out, int depth) {
    if (threadIdx.x == 1) parent_kernel<<<1, 1>>>(out, depth);
}

extern "C" void nested(int* out, cudaStream_t stream) { parent_kernel<<<1, 1, 0, stream>>>(out, 0); }
