// A step of decoding with a KV cache in e4m3: quantize the new key and value, append them, and attend to all tokens.
//
//   q, out: [batch, heads, head_dim]     k_new, v_new: [batch, kv_heads, head_dim]
//   lengths: [batch], the numbers of tokens before the step
//   k_cache, v_cache: [batch, kv_heads, max_length, head_dim]     k_scales, v_scales: [batch, kv_heads, max_length]
//   parts: [splits, batch * heads, head_dim + 2], for each part of the keys its output, its maximum and its sum
//
// A block handles one sequence, one key head with up to eight query heads, and a part of the keys. A warp handles 16
// keys at a time with mma.sync in bf16, which represents every e4m3 number. The queries are operand A, in rows 0 to 7.
// Scales of keys multiply scores, scales of values multiply probabilities, so the 8-bit numbers are converted and
// nothing more.
//
// mma.sync adds over 16 columns of a key, and its result has 8 columns. For heads of 4 or 8 columns one mma.sync is
// enough. Lanes without columns of a key pass zeros. For heads of 4 columns, columns 4 to 7 of the result are not used.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

constexpr int kWarps = 4, kKeys = 16, kGroup = 8;
constexpr float kLargest = 448.0f;

// Convert bytes 0 and 2 of a word from e4m3 to bf16. Exponent and mantissa, shifted by 4, are those of a bf16 that is
// 2^120 times too small, also for subnormals, so a multiplication corrects them. For bytes 1 and 3 pass word >> 8.
__device__ __forceinline__ unsigned bf16_pair(unsigned word) {
    const unsigned tiny = (word << 4 & 0x07f007f0) | (word << 8 & 0x80008000);
    constexpr unsigned short kFactor = (120 + 127) << 7;
    const __nv_bfloat162 factor = {__ushort_as_bfloat16(kFactor), __ushort_as_bfloat16(kFactor)};
    const __nv_bfloat162 pair = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&tiny), factor);
    return *reinterpret_cast<const unsigned*>(&pair);
}

// Quantize a row of HEAD_DIM numbers with one scale. One warp calls it.
template <int HEAD_DIM>
__device__ __forceinline__ void append(const __nv_bfloat16* from, unsigned char* to, float* scale) {
    constexpr int kEach = HEAD_DIM < 32 ? 1 : HEAD_DIM / 32;
    const int lane = threadIdx.x % 32;
    const bool exists = HEAD_DIM >= 32 || lane < HEAD_DIM;
    float value[kEach], amax = 1e-10f;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        value[i] = exists ? __bfloat162float(from[lane * kEach + i]) : 0.0f;
        amax = fmaxf(amax, fabsf(value[i]));
    }
    for (int offset = 16; offset > 0; offset /= 2) amax = fmaxf(amax, __shfl_xor_sync(0xffffffff, amax, offset));
    const float factor = kLargest / amax;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        if (exists) to[lane * kEach + i] = __nv_cvt_float_to_fp8(value[i] * factor, __NV_SATFINITE, __NV_E4M3);
    }
    if (lane == 0) *scale = amax / kLargest;
}

// Load BYTES bytes (1, 4, 8 or 16) of a row as words.
template <int BYTES>
__device__ __forceinline__ void load_words(unsigned (&words)[(BYTES + 3) / 4], const unsigned char* from) {
    if constexpr (BYTES == 16) {
        const uint4 all = *reinterpret_cast<const uint4*>(from);
        words[0] = all.x;
        words[1] = all.y;
        words[2] = all.z;
        words[3] = all.w;
    } else if constexpr (BYTES == 8) {
        const uint2 all = *reinterpret_cast<const uint2*>(from);
        words[0] = all.x;
        words[1] = all.y;
    } else {
        words[0] = BYTES == 4 ? *reinterpret_cast<const unsigned*>(from) : *from;
    }
}

template <int HEAD_DIM>
__global__ void __launch_bounds__(kWarps * 32)
    decode_kernel(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k_new,
                  const __nv_bfloat16* __restrict__ v_new, const int* __restrict__ lengths, unsigned char* k_cache,
                  unsigned char* v_cache, float* k_scales, float* v_scales, float* parts, __nv_bfloat16* out, int heads,
                  int kv_heads, int max_length, int splits, float scale) {
    constexpr bool kNarrow = HEAD_DIM < 16;
    constexpr int kPieces = kNarrow ? 1 : HEAD_DIM / 64, kWords = kNarrow ? 1 : 4;  // per lane: pieces of a key; words
    constexpr int kWide = kNarrow ? 1 : HEAD_DIM / 8;                               // bytes of a value per lane
    __shared__ float shared_out[kWarps][kGroup][8 * kWide], shared_max[kWarps][kGroup], shared_sum[kWarps][kGroup];

    const int kv_head = blockIdx.x, sequence = blockIdx.y, split = blockIdx.z, group = heads / kv_heads;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const bool key_exists = !kNarrow || 4 * t < HEAD_DIM;  // this lane has columns of a key
    const int value_column = HEAD_DIM < 8 ? g % HEAD_DIM : g * kWide;
    const size_t own = static_cast<size_t>(sequence) * kv_heads + kv_head;
    unsigned char* keys = k_cache + own * max_length * HEAD_DIM;
    unsigned char* values = v_cache + own * max_length * HEAD_DIM;
    const int length = lengths[sequence], total = length + 1;
    const int each = ((total + splits - 1) / splits + kKeys - 1) / kKeys * kKeys;
    const int begin = split * each, end = min(total, begin + each);

    if (begin <= length && length < begin + each) {  // only this block reads the new token
        const size_t place = own * max_length + length;
        if (warp == 0) append<HEAD_DIM>(k_new + own * HEAD_DIM, k_cache + place * HEAD_DIM, k_scales + place);
        if (warp == 1) append<HEAD_DIM>(v_new + own * HEAD_DIM, v_cache + place * HEAD_DIM, v_scales + place);
        __syncthreads();
    }

    // Load the queries in the order in which a lane unpacks a key: bytes 0 and 2 of a word, then bytes 1 and 3.
    unsigned queries[kPieces * kWords][2] = {};
    if (g < group && key_exists) {
        const __nv_bfloat16* row = q + (static_cast<size_t>(sequence) * heads + kv_head * group + g) * HEAD_DIM;
#pragma unroll
        for (int i = 0; i < kPieces * kWords; ++i) {
            const uint2 four = *reinterpret_cast<const uint2*>(row + i / kWords * 64 + t * 4 * kWords + i % kWords * 4);
            queries[i][0] = __byte_perm(four.x, four.y, 0x5410);
            queries[i][1] = __byte_perm(four.x, four.y, 0x7632);
        }
    }

    float sums[kWide][4] = {}, maximum = -INFINITY, denominator = 0.0f;  // the results of query g
    const float to_log2 = scale * 1.4426950408889634f;
    for (int first = begin + warp * kKeys; first < end; first += kWarps * kKeys) {
        unsigned own_values[4][(kWide + 3) / 4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // keys 2 t, 2 t + 1, 2 t + 8, 2 t + 9; past the end, the last key
            const int key = min(first + 2 * t + i % 2 + i / 2 * 8, end - 1);
            load_words<kWide>(own_values[i], values + static_cast<size_t>(key) * HEAD_DIM + value_column);
        }
        float scores[2][4] = {};
#pragma unroll
        for (int tile = 0; tile < 2; ++tile) {
            const unsigned char* key = keys + static_cast<size_t>(min(first + 8 * tile + g, end - 1)) * HEAD_DIM;
#pragma unroll
            for (int piece = 0; piece < kPieces; ++piece) {
                unsigned words[kWords] = {};
                if (key_exists) load_words<4 * kWords>(words, key + piece * 64 + t * 4 * kWords);
#pragma unroll
                for (int i = 0; i < kWords; ++i) {
                    const unsigned a[4] = {queries[piece * kWords + i][0], 0, queries[piece * kWords + i][1], 0};
                    llmk::mma_m16n8k16<__nv_bfloat16>(scores[tile], a, bf16_pair(words[i]), bf16_pair(words[i] >> 8));
                }
            }
        }

        float value_scale[2][2], most = maximum;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int key = first + i / 2 * 8 + 2 * t + i % 2;
            const size_t place = own * max_length + min(key, end - 1);
            float& score = scores[i / 2][i % 2];
            score = key < end ? score * (to_log2 * k_scales[place]) : -INFINITY;
            value_scale[i / 2][i % 2] = v_scales[place];
            most = fmaxf(most, score);
        }
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 2));
        const float correction = exp2f(maximum - most);  // 0 for the first keys
        maximum = most;
        denominator *= correction;
#pragma unroll
        for (int i = 0; i < kWide; ++i) {
            sums[i][0] *= correction;
            sums[i][1] *= correction;
        }
        unsigned probabilities[4] = {};
#pragma unroll
        for (int tile = 0; tile < 2; ++tile) {
            const float p0 = exp2f(scores[tile][0] - most), p1 = exp2f(scores[tile][1] - most);
            denominator += p0 + p1;
            probabilities[2 * tile] =
                llmk::pack_pair<__nv_bfloat16>(p0 * value_scale[tile][0], p1 * value_scale[tile][1]);
        }
#pragma unroll
        for (int i = 0; i < kWide; ++i) {  // column g of the i-th tile is column g * kWide + i of the head
            const unsigned select = i % 4 < 2 ? 0x5410 : 0x7632;
            const unsigned upper = __byte_perm(own_values[0][i / 4], own_values[1][i / 4], select);
            const unsigned lower = __byte_perm(own_values[2][i / 4], own_values[3][i / 4], select);
            llmk::mma_m16n8k16<__nv_bfloat16>(sums[i], probabilities, bf16_pair(upper >> (i % 2 * 8)),
                                              bf16_pair(lower >> (i % 2 * 8)));
        }
    }

    // Combine the results of the warps. Lane (g, t) holds columns 2 t and 2 t + 1 of each tile, for query g.
    denominator += __shfl_xor_sync(0xffffffff, denominator, 1);
    denominator += __shfl_xor_sync(0xffffffff, denominator, 2);
    if (t == 0) {
        shared_max[warp][g] = maximum;
        shared_sum[warp][g] = denominator;
    }
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
        shared_out[warp][g][2 * t * kWide + i] = sums[i][0];
        shared_out[warp][g][(2 * t + 1) * kWide + i] = sums[i][1];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < group * HEAD_DIM; i += kWarps * 32) {
        const int query = i / HEAD_DIM, column = i % HEAD_DIM;
        float most = -INFINITY, weight = 0.0f, sum = 0.0f;
#pragma unroll
        for (int part = 0; part < kWarps; ++part) most = fmaxf(most, shared_max[part][query]);
#pragma unroll
        for (int part = 0; part < kWarps; ++part) {
            const float factor = most == -INFINITY ? 0.0f : exp2f(shared_max[part][query] - most);
            weight += factor * shared_sum[part][query];
            sum += factor * shared_out[part][query][column];
        }
        const size_t head = static_cast<size_t>(sequence) * heads + kv_head * group + query;
        if (splits == 1) {
            out[head * HEAD_DIM + column] = __float2bfloat16(sum / weight);
        } else {
            float* part = parts + (static_cast<size_t>(split) * gridDim.y * heads + head) * (HEAD_DIM + 2);
            part[column] = sum;
            if (column == 0) {
                part[HEAD_DIM] = most;
                part[HEAD_DIM + 1] = weight;
            }
        }
    }
}

// Combine the parts of the keys. A block handles one query head, with kTeams threads per element: each reads every
// kTeams-th part, so that few parts are read one after another.
constexpr int kTeams = 8;

template <int DIM>
__global__ void combine(const float* __restrict__ parts, __nv_bfloat16* __restrict__ out, int splits) {
    __shared__ float mosts[kTeams], weights[kTeams], sums[kTeams][DIM];
    const size_t stride = static_cast<size_t>(gridDim.x) * (DIM + 2);
    const float* part = parts + static_cast<size_t>(blockIdx.x) * (DIM + 2);
    const int team = threadIdx.y, column = threadIdx.x;
    float most = -INFINITY, weight = 0.0f, sum = 0.0f;
#pragma unroll 8
    for (int split = team; split < splits; split += kTeams) most = fmaxf(most, part[split * stride + DIM]);
#pragma unroll 8
    for (int split = team; split < splits; split += kTeams) {
        const float factor = most == -INFINITY ? 0.0f : exp2f(part[split * stride + DIM] - most);
        weight += factor * part[split * stride + DIM + 1];
        sum += factor * part[split * stride + column];
    }
    if (column == 0) mosts[team] = most, weights[team] = weight;
    sums[team][column] = sum;
    __syncthreads();
    if (team > 0) return;
#pragma unroll
    for (int i = 0; i < kTeams; ++i) most = fmaxf(most, mosts[i]);
    weight = sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kTeams; ++i) {
        const float factor = exp2f(mosts[i] - most);  // 0 for a team without parts
        weight += factor * weights[i];
        sum += factor * sums[i][column];
    }
    out[static_cast<size_t>(blockIdx.x) * DIM + column] = __float2bfloat16(sum / weight);
}

extern "C" void fp8_kv_cache(const __nv_bfloat16* q, const __nv_bfloat16* k_new, const __nv_bfloat16* v_new,
                             const int* lengths, unsigned char* k_cache, unsigned char* v_cache, float* k_scales,
                             float* v_scales, float* parts, __nv_bfloat16* out, int batch, int heads, int kv_heads,
                             int head_dim, int max_length, int splits, float scale, cudaStream_t stream) {
    if (batch == 0) return;
    auto* kernel = head_dim == 4    ? decode_kernel<4>
                   : head_dim == 8  ? decode_kernel<8>
                   : head_dim == 64 ? decode_kernel<64>
                                    : decode_kernel<128>;
    kernel<<<dim3(kv_heads, batch, splits), kWarps * 32, 0, stream>>>(q, k_new, v_new, lengths, k_cache, v_cache,
                                                                      k_scales, v_scales, parts, out, heads, kv_heads,
                                                                      max_length, splits, scale);
    if (splits == 1) return;
    const auto combine_kernel = head_dim == 4    ? combine<4>
                                : head_dim == 8  ? combine<8>
                                : head_dim == 64 ? combine<64>
                                                 : combine<128>;
    combine_kernel<<<batch * heads, dim3(head_dim, kTeams), 0, stream>>>(parts, out, splits);
}
