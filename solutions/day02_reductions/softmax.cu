// Softmax of each row: out = exp(x - max) / sum(exp(x - max)), for f32, f16 and bf16, any width.
//
// Online: a running maximum and a running sum travel together, and the sum is rescaled whenever the maximum grows, so
// one reading of the row gives both. A thread keeps what it has read in registers (64 bytes), so a row that the block
// can hold is read once and written once. A wider row is walked in tiles: forwards for the maximum and the sum, and
// then, since the last tile is still at hand, backwards to write.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

constexpr int kPacks = 4;  // 16-byte accesses in flight per thread
constexpr unsigned kAllLanes = 0xffffffffu;

// kWidth neighbours, read or written by one access.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
    T value[kWidth];
};

// The maximum of some elements, and the sum of exp(element - maximum). With -FLT_MAX for no elements, and not
// -infinity, no difference of two maxima is infinity - infinity, which is NaN.
struct Running {
    float maximum;
    float sum;
};

__device__ Running nothing_seen() { return {-FLT_MAX, 0.0f}; }

// The state of two sets of elements together: bring both sums to the larger maximum, then add.
__device__ Running combine(Running a, Running b) {
    Running both;
    both.maximum = fmaxf(a.maximum, b.maximum);
    both.sum = a.sum * __expf(a.maximum - both.maximum) + b.sum * __expf(b.maximum - both.maximum);
    return both;
}

// Every lane gets the state of all 32.
__device__ Running warp_combine(Running mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Running other;
        other.maximum = __shfl_xor_sync(kAllLanes, mine.maximum, distance);
        other.sum = __shfl_xor_sync(kAllLanes, mine.sum, distance);
        mine = combine(mine, other);
    }
    return mine;
}

// Every thread of the block gets the state of all. Called once per kernel: `partial` is not protected against reuse.
__device__ Running block_combine(Running mine) {
    __shared__ Running partial[32];
    const int lane = threadIdx.x % 32;
    mine = warp_combine(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_combine(lane < blockDim.x / 32 ? partial[lane] : nothing_seen());
}

// x, out: (rows, cols), one block per row. A tile is blockDim.x * kCount elements; a thread has kPacks packs of it.
template <int kWidth, typename T>
__global__ void __launch_bounds__(1024) softmax_kernel(const T* x, T* out, int cols) {
    constexpr int kCount = kPacks * kWidth;
    const T* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    T* out_row = out + static_cast<long long>(blockIdx.x) * cols;
    const int tile = blockDim.x * kCount;
    float value[kCount];
    Running mine = nothing_seen();

    auto load_tile = [&](int start) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            const int col = start + (p * blockDim.x + threadIdx.x) * kWidth;
            Pack<T, kWidth> pack;
            if (col < cols) pack = *reinterpret_cast<const Pack<T, kWidth>*>(x_row + col);
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                value[p * kWidth + j] = col < cols ? static_cast<float>(pack.value[j]) : -INFINITY;
            }
        }
    };

    int start = 0;
    while (true) {
        load_tile(start);
        float maximum = mine.maximum;
#pragma unroll
        for (int i = 0; i < kCount; ++i) maximum = fmaxf(maximum, value[i]);
        mine.sum *= __expf(mine.maximum - maximum);
        mine.maximum = maximum;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            value[i] = __expf(value[i] - maximum);
            mine.sum += value[i];
        }
        if (start + tile >= cols) break;
        start += tile;
    }

    const Running row = block_combine(mine);
    const float scale = __expf(mine.maximum - row.maximum) / row.sum;

    while (true) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            const int col = start + (p * blockDim.x + threadIdx.x) * kWidth;
            Pack<T, kWidth> pack;
#pragma unroll
            for (int j = 0; j < kWidth; ++j) pack.value[j] = static_cast<T>(value[p * kWidth + j] * scale);
            if (col < cols) *reinterpret_cast<Pack<T, kWidth>*>(out_row + col) = pack;
        }
        if (start == 0) break;
        start -= tile;
        load_tile(start);
#pragma unroll
        for (int i = 0; i < kCount; ++i) value[i] = __expf(value[i] - mine.maximum);
    }
}

bool is_aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

template <typename T>
void launch(const T* x, T* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    constexpr int kWidth = 16 / sizeof(T);
    // Every row must start at a multiple of 16 bytes; otherwise one element at a time.
    const bool wide = cols % kWidth == 0 && is_aligned(x) && is_aligned(out);
    const int per_warp = 32 * kPacks * (wide ? kWidth : 1);
    const int warps = cols < 32 * per_warp ? (cols + per_warp - 1) / per_warp : 32;
    if (wide) {
        softmax_kernel<kWidth><<<rows, 32 * warps, 0, stream>>>(x, out, cols);
    } else {
        softmax_kernel<1><<<rows, 32 * warps, 0, stream>>>(x, out, cols);
    }
}

extern "C" void softmax_f32(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void softmax_f16(const __half* x, __half* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void softmax_bf16(const __nv_bfloat16* x, __nv_bfloat16* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}
