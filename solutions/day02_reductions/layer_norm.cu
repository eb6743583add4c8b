// LayerNorm of each row: out = (x - mean) / sqrt(variance + eps) * weight + bias, for f32, f16 and bf16, any width.
//
// The variance as mean(x^2) - mean(x)^2 is the small difference of two large numbers when the mean is large. Here every
// set of elements is described by its count, its mean and its sum of squared deviations, none of which is large, and
// two such sets are joined by Chan's formula (Welford's is the case where one set is a single element): first what a
// thread holds, then lanes, then warps. A row that the block can hold in registers is read once and written once; a
// wider one is walked in tiles, forwards for the moments and, since the last tile is still at hand, backwards to write.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kPacks = 4;  // 16-byte accesses in flight per thread
constexpr unsigned kAllLanes = 0xffffffffu;

// kWidth neighbours, read or written by one access.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
    T value[kWidth];
};

// What is kept of a set of elements. The variance is deviations / count.
struct Moments {
    float count;
    float mean;
    float deviations;  // the sum of (element - mean)^2
};

// Chan, Golub and LeVeque: the moments of two sets together.
__device__ Moments combine(Moments a, Moments b) {
    if (b.count == 0.0f) return a;
    const float count = a.count + b.count;
    const float share = b.count / count;
    const float delta = b.mean - a.mean;
    return {count, a.mean + delta * share, a.deviations + b.deviations + delta * delta * a.count * share};
}

// Every lane gets the moments of all 32.
__device__ Moments warp_combine(Moments mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Moments other;
        other.count = __shfl_xor_sync(kAllLanes, mine.count, distance);
        other.mean = __shfl_xor_sync(kAllLanes, mine.mean, distance);
        other.deviations = __shfl_xor_sync(kAllLanes, mine.deviations, distance);
        mine = combine(mine, other);
    }
    return mine;
}

// Every thread of the block gets the moments of all. Called once per kernel: `partial` is not protected against reuse.
__device__ Moments block_combine(Moments mine) {
    __shared__ Moments partial[32];
    const int lane = threadIdx.x % 32;
    mine = warp_combine(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_combine(lane < blockDim.x / 32 ? partial[lane] : Moments{0.0f, 0.0f, 0.0f});
}

// x, out: (rows, cols), one block per row; weight, bias: (cols). A tile is blockDim.x * kCount elements.
template <int kWidth, typename T>
__global__ void __launch_bounds__(1024)
    layer_norm_kernel(const T* x, const T* weight, const T* bias, T* out, int cols, float eps) {
    constexpr int kCount = kPacks * kWidth;
    using Access = Pack<T, kWidth>;
    const T* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    T* out_row = out + static_cast<long long>(blockIdx.x) * cols;
    const int tile = blockDim.x * kCount;
    float value[kCount];

    // Where pack p of this thread begins in the tile at `start`.
    auto column = [&](int start, int p) { return start + static_cast<int>(p * blockDim.x + threadIdx.x) * kWidth; };

    auto load_tile = [&](int start) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            Access pack;
            if (column(start, p) < cols) pack = *reinterpret_cast<const Access*>(x_row + column(start, p));
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                value[p * kWidth + j] = column(start, p) < cols ? static_cast<float>(pack.value[j]) : 0.0f;
            }
        }
    };

    Moments mine{0.0f, 0.0f, 0.0f};
    int start = 0;
    while (true) {
        load_tile(start);
        // The moments of this tile's values: there are few, and they are in registers, so two passes cost little.
        // Summing distances from the first value keeps the mean of equal numbers exact.
        Moments here{0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            if (column(start, i / kWidth) < cols) {
                here.count += 1.0f;
                here.mean += value[i] - value[0];
            }
        }
        here.mean = value[0] + here.mean / fmaxf(here.count, 1.0f);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const float deviation = value[i] - here.mean;
            if (column(start, i / kWidth) < cols) here.deviations += deviation * deviation;
        }
        mine = combine(mine, here);
        if (start + tile >= cols) break;
        start += tile;
    }

    const Moments row = block_combine(mine);
    const float scale = rsqrtf(row.deviations / row.count + eps);

    while (true) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            const int col = column(start, p);
            if (col < cols) {
                const Access w = *reinterpret_cast<const Access*>(weight + col);
                const Access b = *reinterpret_cast<const Access*>(bias + col);
                Access pack;
#pragma unroll
                for (int j = 0; j < kWidth; ++j) {
                    const float normalised = (value[p * kWidth + j] - row.mean) * scale;
                    pack.value[j] =
                        static_cast<T>(normalised * static_cast<float>(w.value[j]) + static_cast<float>(b.value[j]));
                }
                *reinterpret_cast<Access*>(out_row + col) = pack;
            }
        }
        if (start == 0) break;
        start -= tile;
        load_tile(start);
    }
}

bool is_aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

template <typename T>
void launch(const T* x, const T* weight, const T* bias, T* out, int rows, int cols, float eps, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    constexpr int kWidth = 16 / sizeof(T);
    // Every row must start at a multiple of 16 bytes; otherwise one element at a time.
    const bool wide = cols % kWidth == 0 && is_aligned(x) && is_aligned(weight) && is_aligned(bias) && is_aligned(out);
    const int per_warp = 32 * kPacks * (wide ? kWidth : 1);
    const int warps = cols < 32 * per_warp ? (cols + per_warp - 1) / per_warp : 32;
    if (wide) {
        layer_norm_kernel<kWidth><<<rows, 32 * warps, 0, stream>>>(x, weight, bias, out, cols, eps);
    } else {
        layer_norm_kernel<1><<<rows, 32 * warps, 0, stream>>>(x, weight, bias, out, cols, eps);
    }
}

extern "C" void layer_norm_f32(const float* x, const float* weight, const float* bias, float* out, int rows, int cols,
                               float eps, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, cols, eps, stream);
}

extern "C" void layer_norm_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                               int cols, float eps, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, cols, eps, stream);
}

extern "C" void layer_norm_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                __nv_bfloat16* out, int rows, int cols, float eps, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, cols, eps, stream);
}
