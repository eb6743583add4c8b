// A single mma.sync and a single ldmatrix. The registers of each lane come from and go to global memory, so that the
// lesson can show which lane holds which element.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

// c = a b. Lane i has four registers a[i] of operand A [16, 16] and two b[i] of operand B [16, 8], and receives four
// accumulators c[i] of the result [16, 8].
__global__ void mma_once(const unsigned* a, const unsigned* b, float* c) {
    const int lane = threadIdx.x;
    float sums[4] = {};
    const unsigned a_registers[4] = {a[lane * 4], a[lane * 4 + 1], a[lane * 4 + 2], a[lane * 4 + 3]};
    llmk::mma_m16n8k16<__half>(sums, a_registers, b[lane * 2], b[lane * 2 + 1]);
    for (int e = 0; e < 4; ++e) c[lane * 4 + e] = sums[e];
}

// Load a row-major 16 x 16 tile with ldmatrix; registers[i] are those of lane i.
__global__ void ldmatrix_once(const __half* tile, unsigned* registers, bool transposed) {
    __shared__ __align__(16) __half shared[16 * 16];
    const int lane = threadIdx.x;
    for (int i = lane; i < 16 * 16; i += 32) shared[i] = tile[i];
    __syncwarp();
    unsigned loaded[4];
    const __half* row = shared + lane % 16 * 16 + lane / 16 * 8;
    if (transposed) {
        llmk::ldmatrix_x4_trans(loaded, row);
    } else {
        llmk::ldmatrix_x4(loaded, row);
    }
    for (int e = 0; e < 4; ++e) registers[lane * 4 + e] = loaded[e];
}

extern "C" void mma_of_registers(const int* a, const int* b, float* c, cudaStream_t stream) {
    mma_once<<<1, 32, 0, stream>>>(reinterpret_cast<const unsigned*>(a), reinterpret_cast<const unsigned*>(b), c);
}

extern "C" void ldmatrix_of_tile(const __half* tile, int* registers, bool transposed, cudaStream_t stream) {
    ldmatrix_once<<<1, 32, 0, stream>>>(tile, reinterpret_cast<unsigned*>(registers), transposed);
}
