// A correct argmax with a different design: value and column form a 64-bit number with the required order, so that
// the reduction is a maximum, computed by an atomic in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

using Key = unsigned long long;

// Returns a key whose maximum is the argmax. The upper half grows with the value: NaN is the largest, and -0 equals +0.
// The lower half decreases with the column, so the lowest column wins a tie.
__device__ Key key_of(float value, int col) {
    const unsigned bits = __float_as_uint(value + 0.0f);
    unsigned order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    if (value != value) order = 0xffffffffu;
    return static_cast<Key>(order) << 32 | (0xffffffffu - static_cast<unsigned>(col));
}

// x: (rows, cols), one block per row; out: (rows).
template <typename T>
__global__ void argmax_rows(const T* x, int* out, int cols) {
    __shared__ Key best;
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    x += static_cast<long long>(blockIdx.x) * cols;
    Key mine = 0;
    for (int col = threadIdx.x; col < cols; col += blockDim.x) {
        const Key key = key_of(static_cast<float>(x[col]), col);
        mine = key > mine ? key : mine;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        const Key other = __shfl_xor_sync(0xffffffffu, mine, distance);
        mine = other > mine ? other : mine;
    }
    if (threadIdx.x % 32 == 0) atomicMax(&best, mine);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = static_cast<int>(0xffffffffu - static_cast<unsigned>(best));
}

template <typename T>
void launch(const T* x, int* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    argmax_rows<<<rows, 256, 0, stream>>>(x, out, cols);
}
