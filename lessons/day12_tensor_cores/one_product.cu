// One mma.sync, and one ldmatrix, by themselves: what each lane gives and gets comes from and goes to memory, so that the lesson
// can say which element is where.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

// c = a b, where lane i has the four registers a[i] of operand A [16, 16], two b[i] of operand B [16, 8], and gets four
// accumulators c[i] of the result [16, 8].
__global__ void multiply_once(const unsigned* a, const unsigned* b, float* c) {
    const int lane = threadIdx.x;
    float sums[4] = {};
    const unsigned of_a[4] = {a[lane * 4], a[lane * 4 + 1], a[lane * 4 + 2], a[lane * 4 + 3]};
    llmk::mma_m16n8k16<__half>(sums, of_a, b[lane * 2], b[lane * 2 + 1]);
    for (int e = 0; e < 4; ++e) c[lane * 4 + e] = sums[e];
}

// A 16 x 16 tile, one row behind the other, is loaded: registers[i] are lane i's.
__global__ void load_once(const __half* tile, unsigned* registers, bool transposed) {
    __shared__ __align__(16) __half shared[16 * 16];
    const int lane = threadIdx.x;
    for (int i = lane; i < 16 * 16; i += 32) shared[i] = tile[i];
    __syncwarp();
    unsigned got[4];
    const __half* row = shared + lane % 16 * 16 + lane / 16 * 8;
    if (transposed) {
        llmk::ldmatrix_x4_trans(got, row);
    } else {
        llmk::ldmatrix_x4(got, row);
    }
    for (int e = 0; e < 4; ++e) registers[lane * 4 + e] = got[e];
}

extern "C" void product_of_registers(const int* a, const int* b, float* c, cudaStream_t stream) {
    multiply_once<<<1, 32, 0, stream>>>(reinterpret_cast<const unsigned*>(a), reinterpret_cast<const unsigned*>(b), c);
}

extern "C" void registers_of_tile(const __half* tile, int* registers, bool transposed, cudaStream_t stream) {
    load_once<<<1, 32, 0, stream>>>(tile, reinterpret_cast<unsigned*>(registers), transposed);
}
