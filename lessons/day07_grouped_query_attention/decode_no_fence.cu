// Wrong: the last block to finish combines the parts, but no fence makes the other blocks' parts visible to it.
//
//   partial: [rows, splits], one number per part     counter: [rows], zeros     out: [rows]
#include <cuda_runtime.h>

__global__ void sum_kernel(const float* x, float* partial, int* counter, float* out, int splits, int length) {
    const int split = blockIdx.x % splits, row = blockIdx.x / splits;
    const int part = length / splits;
    float sum = 0;
    for (int i = threadIdx.x; i < part; i += 32) sum += x[row * length + split * part + i];
    for (int reach = 16; reach > 0; reach /= 2) sum += __shfl_xor_sync(0xffffffff, sum, reach);
    if (threadIdx.x != 0) return;
    partial[row * splits + split] = sum;
    // A __threadfence() belongs here, so that the part is visible before the count.
    const bool last = atomicAdd(&counter[row], 1) == splits - 1;
    if (!last) return;
    float total = 0;
    for (int p = 0; p < splits; ++p) total += partial[row * splits + p];
    out[row] = total;
}

extern "C" void sum_parts(const float* x, float* partial, int* counter, float* out, int rows, int splits, int length,
                          cudaStream_t stream) {
    sum_kernel<<<rows * splits, 32, 0, stream>>>(x, partial, counter, out, splits, length);
}
