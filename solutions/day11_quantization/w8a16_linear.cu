// out = x w for a few rows of f16 and int8 weights: w[n, k] = weight[n, k] * scales[n], sums in f32.
//
//   x: [rows, in_features]     weight: [out_features, in_features]     scales: [out_features]
//   out: [rows, out_features]
//
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/mma.cuh"

constexpr int kRows = 16;              // rows of x that a block computes: the rows of one mma
constexpr int kTiles = 4;              // tiles of eight features: the columns of an mma
constexpr int kFeatures = 8 * kTiles;  // features of a block
constexpr int kColumns = 64;           // columns of a step: sixteen for each of four lanes
constexpr int kPitch = kFeatures + 8;  // floats from one row of sums to the next: other banks
constexpr int kSums = kRows * kPitch;  // floats of a warp's sums

template <int SPLIT>
struct Shape {
    static constexpr int kGroups = SPLIT == 1 ? 4 : 1;  // groups of 32 features that a block computes
    static constexpr int kThreads = 32 * SPLIT * kGroups;
};

// Convert four int8 to four halves. The byte of q + 128 below the byte 0x64 is the half 1024 + q + 128.
__device__ __forceinline__ void int8_to_half(unsigned bytes, unsigned& low, unsigned& high) {
    const unsigned unsigned_bytes = bytes ^ 0x80808080u;
    const __half2 offset = __half2half2(__float2half_rn(1152.0f));
    const unsigned pairs[2] = {__byte_perm(unsigned_bytes, 0x64646464u, 0x4140),
                               __byte_perm(unsigned_bytes, 0x64646464u, 0x4342)};
    const __half2 first = __hsub2(*reinterpret_cast<const __half2*>(&pairs[0]), offset);
    const __half2 second = __hsub2(*reinterpret_cast<const __half2*>(&pairs[1]), offset);
    low = *reinterpret_cast<const unsigned*>(&first);
    high = *reinterpret_cast<const unsigned*>(&second);
}

// Load kBytes bytes of a row from `column` on into registers. Elements past the end of the row are zeros.
// kVectors: rows start at multiples of 16 bytes, and their length is one.
template <bool kVectors, int kBytes, typename T>
__device__ __forceinline__ void load_columns(unsigned (&to)[kBytes / 4], const T* row, int column, int in_features) {
    constexpr int kSize = static_cast<int>(sizeof(T)), kPerWord = 4 / kSize;
    if constexpr (kVectors) {
#pragma unroll
        for (int i = 0; i < kBytes / 16; ++i) {
            uint4 found = make_uint4(0, 0, 0, 0);
            if (row != nullptr && column < in_features) found = reinterpret_cast<const uint4*>(row + column)[i];
            to[4 * i] = found.x, to[4 * i + 1] = found.y, to[4 * i + 2] = found.z, to[4 * i + 3] = found.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < kBytes / 4; ++i) to[i] = 0;
        for (int i = 0; i < kBytes / kSize; ++i) {
            if (row == nullptr || column + i >= in_features) break;
            unsigned bits = 0;
            if constexpr (sizeof(T) == 1) {
                bits = static_cast<unsigned char>(row[column + i]);
            } else {
                bits = __half_as_ushort(row[column + i]);
            }
            to[i / kPerWord] |= bits << (8 * kSize * (i % kPerWord));
        }
    }
}

// SPLIT warps compute 16 rows of x times 32 features and divide the columns among them: a step of a warp is 64 columns.
// With SPLIT > 1, they are a block, and add their parts through shared memory. With SPLIT = 1, no warp waits for another.
// Lane (i, t) = (lane / 4, lane % 4) loads the 16 columns from 16 t on, of weight rows i, i + 8, ... of the
// block and of x rows i and i + 8. An mma expects other columns in each lane, but a sum may be taken in any order.
template <bool kVectors, int SPLIT>
__global__ void __launch_bounds__(Shape<SPLIT>::kThreads)
    w8a16_kernel(const __half* __restrict__ x, const int8_t* __restrict__ weight, const float* __restrict__ scales,
                 __half* __restrict__ out, int rows, int in_features, int out_features) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int row0 = blockIdx.y * kRows;
    const int feature0 = (blockIdx.x * Shape<SPLIT>::kGroups + warp / SPLIT) * kFeatures;
    const __half* x_row[2];
    const int8_t* w_row[kTiles];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = row0 + i + 8 * h;
        x_row[h] = row < rows ? x + static_cast<long long>(row) * in_features : nullptr;
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
        const int feature = feature0 + 8 * tile + i;
        w_row[tile] = feature < out_features ? weight + static_cast<long long>(feature) * in_features : nullptr;
    }

    // The weights of the next step are loaded before those of this step are used.
    unsigned next[kTiles][4];
    auto fetch = [&](int column) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            load_columns<kVectors, 16>(next[tile], w_row[tile], column, in_features);
        }
    };
    float product[kTiles][4] = {};  // for each tile: rows i and i + 8, features 2 t and 2 t + 1
    const int first = warp % SPLIT * kColumns + 16 * t;
    fetch(first);
    for (int column = first; column < in_features + 16 * t; column += SPLIT * kColumns) {
        unsigned w[kTiles][4], a[8], a8[8];
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int word = 0; word < 4; ++word) w[tile][word] = next[tile][word];
        }
        fetch(column + SPLIT * kColumns);
        load_columns<kVectors, 32>(a, x_row[0], column, in_features);
        load_columns<kVectors, 32>(a8, x_row[1], column, in_features);
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const unsigned left[4] = {a[2 * word], a8[2 * word], a[2 * word + 1], a8[2 * word + 1]};
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
                unsigned b0, b1;
                int8_to_half(w[tile][word], b0, b1);
                llmk::mma_m16n8k16<__half>(product[tile], left, b0, b1);
            }
        }
    }

    if constexpr (SPLIT == 1) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int part = 0; part < 4; ++part) {
                const int row = row0 + i + part / 2 * 8, feature = feature0 + 8 * tile + 2 * t + part % 2;
                if (row >= rows || feature >= out_features) continue;
                out[static_cast<long long>(row) * out_features + feature] =
                    __float2half_rn(product[tile][part] * scales[feature]);
            }
        }
    } else {
        __shared__ float sums[SPLIT * kSums];
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float2* to = reinterpret_cast<float2*>(sums + warp * kSums + (i + 8 * h) * kPitch + 8 * tile + 2 * t);
                *to = make_float2(product[tile][2 * h], product[tile][2 * h + 1]);
            }
        }
        __syncthreads();
        static_assert(32 * SPLIT == kRows * kFeatures, "a thread adds the parts of one output");
        const int row = threadIdx.x / kFeatures, feature = threadIdx.x % kFeatures;
        if (row0 + row >= rows || feature0 + feature >= out_features) return;
        float sum = 0.0f;
        for (int part = 0; part < SPLIT; ++part) sum += sums[part * kSums + row * kPitch + feature];
        out[static_cast<long long>(row0 + row) * out_features + feature0 + feature] =
            __float2half_rn(sum * scales[feature0 + feature]);
    }
}

template <bool kVectors, int SPLIT>
void launch(const __half* x, const int8_t* weight, const float* scales, __half* out, int rows, int in_features,
            int out_features, cudaStream_t stream) {
    using S = Shape<SPLIT>;
    constexpr int kPerBlock = S::kGroups * kFeatures;
    const dim3 grid((out_features + kPerBlock - 1) / kPerBlock, (rows + kRows - 1) / kRows);
    w8a16_kernel<kVectors, SPLIT>
        <<<grid, S::kThreads, 0, stream>>>(x, weight, scales, out, rows, in_features, out_features);
}

extern "C" void w8a16_linear(const __half* x, const int8_t* weight, const float* scales, __half* out, int rows,
                             int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const auto starts = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight);
    const bool vectors = in_features % 16 == 0 && starts % 16 == 0;
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    // Many features fill the GPU with one warp for each 32 of them. Otherwise 16 warps divide the columns.
    const bool many = out_features / kFeatures >= 16 * sms;
    const auto chosen =
        vectors ? (many ? launch<true, 1> : launch<true, 16>) : (many ? launch<false, 1> : launch<false, 16>);
    chosen(x, weight, scales, out, rows, in_features, out_features, stream);
}
