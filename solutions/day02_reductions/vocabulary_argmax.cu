// Argmax of a few very wide rows, for f32, f16 and bf16: several blocks share a row. The lowest column among equal
// maxima, and the first NaN if any.
//
// A value and its column become one 64-bit key; a better element has a larger key. Combining parts is then a maximum,
// in any order. Each block writes the key of its part to the caller's workspace; a second kernel, with one warp per
// row, takes the largest. The second launch is the barrier between the blocks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

constexpr int kThreads = 256;
constexpr unsigned kAllLanes = 0xffffffffu;

using Key = unsigned long long;  // the key of every element is above 0

// The upper half of a key increases with the value: the bits of a positive float already do, those of a negative one
// are inverted. Adding 0 turns -0 into +0; NaN is above all. The lower half decreases with the column, so the first of
// equal values wins.
__device__ Key key_of(float value, int col) {
    const unsigned bits = __float_as_uint(value + 0.0f);
    unsigned order = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    if (value != value) order = 0xffffffffu;
    return static_cast<Key>(order) << 32 | (0xffffffffu - static_cast<unsigned>(col));
}

__device__ int col_of(Key key) { return static_cast<int>(0xffffffffu - static_cast<unsigned>(key)); }

// Return the largest key of all 32 lanes, in every lane.
__device__ Key warp_largest(Key mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const Key other = __shfl_xor_sync(kAllLanes, mine, distance);
        mine = other > mine ? other : mine;
    }
    return mine;
}

// x: [rows, cols]   partial: [rows, splits]. Block (s, r) takes columns s * part ... (s + 1) * part - 1 of row r, a
// range that may be empty. kWidth: elements per access; part is a multiple of it.
template <int kWidth, typename T>
__global__ void __launch_bounds__(kThreads)
    largest_of_part(const T* __restrict__ x, Key* __restrict__ partial, int cols, long long part) {
    __shared__ Key of_warp[kThreads / 32];
    const T* row = x + static_cast<long long>(blockIdx.y) * cols;
    const long long first = blockIdx.x * part;
    const int end = static_cast<int>(min(first + part, static_cast<long long>(cols)));
    Key mine = 0;
#pragma unroll 4
    for (long long col = first + threadIdx.x * kWidth; col < end; col += kThreads * kWidth) {
        const llmk::Vector<T, kWidth> vector = llmk::load_vector<kWidth>(row + col);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            const Key key = key_of(vector.get(j), static_cast<int>(col) + j);
            mine = key > mine ? key : mine;
        }
    }
    mine = warp_largest(mine);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = warp_largest(threadIdx.x < kThreads / 32 ? of_warp[threadIdx.x] : 0);
        if (threadIdx.x == 0) partial[static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x] = mine;
    }
}

// partial: [rows, splits]   out: [rows]
__global__ void largest_of_row(const Key* __restrict__ partial, int* __restrict__ out, int splits) {
    Key mine = 0;
    for (int i = threadIdx.x; i < splits; i += 32) {
        const Key key = partial[static_cast<long long>(blockIdx.x) * splits + i];
        mine = key > mine ? key : mine;
    }
    mine = warp_largest(mine);
    if (threadIdx.x == 0) out[blockIdx.x] = col_of(mine);
}

template <typename T>
void launch(const T* x, int* out, unsigned long long* partial, int rows, int cols, int splits, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    constexpr int kWidth = llmk::kVectorWidth<T>;
    // Parts of whole vectors: if the rows are aligned, so is each part.
    const long long part = ((cols - 1) / splits + 1LL + kWidth - 1) / kWidth * kWidth;
    const dim3 grid(splits, rows);
    if (llmk::rows_are_aligned(cols, x)) {
        largest_of_part<kWidth><<<grid, kThreads, 0, stream>>>(x, partial, cols, part);
    } else {
        largest_of_part<1><<<grid, kThreads, 0, stream>>>(x, partial, cols, part);
    }
    largest_of_row<<<rows, 32, 0, stream>>>(partial, out, splits);
}

// x: [rows, cols]   out: [rows]   partial: [rows, splits], the workspace
extern "C" void vocabulary_argmax_f32(const float* x, int* out, unsigned long long* partial, int rows, int cols,
                                      int splits, cudaStream_t stream) {
    launch(x, out, partial, rows, cols, splits, stream);
}

extern "C" void vocabulary_argmax_f16(const __half* x, int* out, unsigned long long* partial, int rows, int cols,
                                      int splits, cudaStream_t stream) {
    launch(x, out, partial, rows, cols, splits, stream);
}

extern "C" void vocabulary_argmax_bf16(const __nv_bfloat16* x, int* out, unsigned long long* partial, int rows,
                                       int cols, int splits, cudaStream_t stream) {
    launch(x, out, partial, rows, cols, splits, stream);
}
