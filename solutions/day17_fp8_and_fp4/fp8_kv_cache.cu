// A step of decoding with a KV cache in e4m3: quantize the new key and value, append them, and attend to all tokens.
//
//   q, out: [batch, heads, head_dim]     k_new, v_new: [batch, kv_heads, head_dim]
//   lengths: [batch], the numbers of tokens before the step
//   k_cache, v_cache: [batch, kv_heads, max_length, head_dim]     k_scales, v_scales: [batch, kv_heads, max_length]
//   parts: [splits, batch * heads, head_dim + 2], for each part of the keys its output, its maximum and its sum
//
// A block handles one sequence, one key head with up to eight query heads, and a part of the keys. A warp handles 16
// keys per step with mma.sync in bf16, which represents every e4m3 number. Each warp has its own queue in shared memory,
// filled by cp.async: two steps are being copied while one is in use, so that many loads are in flight. Scales of keys
// multiply scores, scales of values multiply probabilities, so the 8-bit numbers are converted and nothing more.
//
// combine_parts expects the parts of a query head next to each other, so the kernel divides `parts` into part_out
// [batch * heads, splits, head_dim] and part_stats [batch * heads, splits, 2].
//
// For ldmatrix two bytes are one element. Without transposition a lane receives four neighboring bytes of a key. With
// transposition it receives, for two keys, the same two neighboring bytes of their values.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "llmk/decode.cuh"
#include "llmk/mma.cuh"
#include "llmk/swizzle.cuh"

constexpr int kWarps = 4, kKeys = 16, kGroup = 8, kStages = 3;
constexpr float kLargest = 448.0f;

// Shared memory of a warp for heads of HEAD_DIM columns: for each of kStages steps 16 keys, 16 values and their scales.
// Narrow heads are padded with zeros to 16 columns.
template <int HEAD_DIM>
struct Queue {
    static constexpr int kColumns = HEAD_DIM < 16 ? 16 : HEAD_DIM;
    static constexpr int kTile = kKeys * kColumns;              // bytes of the keys, or of the values
    static constexpr int kStep = 2 * kTile + 2 * kKeys * 4;     // bytes of a step: keys, values, scales
    static constexpr int kBytes = kStages * kStep;              // of a warp
    static constexpr int kPitch = kColumns + 4;                 // floats from row to row of the sums at the end
    static constexpr int kRow = HEAD_DIM < 16 ? HEAD_DIM : 16;  // bytes that one cp.async copies
    static constexpr int kCopies = kKeys * HEAD_DIM / kRow;     // copies of 16 keys
    static_assert(kGroup * kPitch * 4 <= kBytes, "the sums of a warp fit into its queue");

    // Return the offset in bytes of a 16-byte chunk of a row.
    static __device__ __forceinline__ int offset(int row, int chunk) {
        if constexpr (HEAD_DIM < 16) {
            return row * 16;
        } else {
            return 2 * llmk::Swizzle<kColumns / 2>::offset(row, chunk * 8);
        }
    }
};

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

template <int HEAD_DIM>
__global__ void __launch_bounds__(kWarps * 32, 4)
    decode_kernel(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k_new,
                  const __nv_bfloat16* __restrict__ v_new, const int* __restrict__ lengths, unsigned char* k_cache,
                  unsigned char* v_cache, float* k_scales, float* v_scales, float* part_out, float2* part_stats,
                  __nv_bfloat16* out, int heads, int kv_heads, int max_length, int splits, float scale) {
    using Own = Queue<HEAD_DIM>;
    constexpr int kChunks = Own::kColumns / 16;  // 16-byte chunks of a key
    extern __shared__ uint4 shared[];
    __shared__ float2 stats[kWarps][kGroup];

    const int kv_head = blockIdx.x, sequence = blockIdx.y, split = blockIdx.z, group = heads / kv_heads;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const size_t own = static_cast<size_t>(sequence) * kv_heads + kv_head;
    const int length = lengths[sequence], part = llmk::keys_per_part(length + 1, splits);
    const long long start = static_cast<long long>(split) * part;
    if (start > length) return;  // the part is empty: the combining kernel skips it
    const int begin = static_cast<int>(start), end = min(length + 1, begin + part);

    if (end == length + 1) {  // only this block reads the new token
        const size_t place = own * max_length + length;
        if (warp == 0) append<HEAD_DIM>(k_new + own * HEAD_DIM, k_cache + place * HEAD_DIM, k_scales + place);
        if (warp == 1) append<HEAD_DIM>(v_new + own * HEAD_DIM, v_cache + place * HEAD_DIM, v_scales + place);
        __syncthreads();
    }

    char* queue = reinterpret_cast<char*>(shared) + warp * Own::kBytes;
    if constexpr (HEAD_DIM < 16) {  // the padding
        for (int i = lane; i < Own::kBytes / 16; i += 32) reinterpret_cast<uint4*>(queue)[i] = make_uint4(0, 0, 0, 0);
        __syncwarp();
    }
    const int first_key = begin + warp * kKeys, steps = (end - begin + kWarps * kKeys - 1) / (kWarps * kKeys);
    auto fetch = [&](int step) {  // start the copies of a step; keys past the end become zeros and are not read
        char* to = queue + step % kStages * Own::kStep;
        const int first = first_key + step * kWarps * kKeys;
        const size_t place = own * max_length + first;
#pragma unroll
        for (int i = lane; i < Own::kCopies; i += 32) {
            const int row = i / (HEAD_DIM / Own::kRow), chunk = i % (HEAD_DIM / Own::kRow);
            const size_t from = (place + row) * HEAD_DIM + chunk * Own::kRow;
            const int missing = first + row < end ? 0 : Own::kRow;
            __pipeline_memcpy_async(to + Own::offset(row, chunk), k_cache + from, Own::kRow, missing);
            __pipeline_memcpy_async(to + Own::kTile + Own::offset(row, chunk), v_cache + from, Own::kRow, missing);
        }
        const float* scales = lane < kKeys ? k_scales : v_scales;
        const int row = lane % kKeys;
        __pipeline_memcpy_async(to + 2 * Own::kTile + lane * 4, scales + place + row, 4, first + row < end ? 0 : 4);
    };
    for (int step = 0; step < kStages - 1; ++step) {
        if (step < steps) fetch(step);
        __pipeline_commit();
    }

    // The queries are rows 0 to 7 of operand A, in the order in which a lane unpacks four bytes of a key: bytes 0 and 2,
    // then bytes 1 and 3.
    unsigned queries[kChunks][2] = {};
    if (g < group && 4 * t < HEAD_DIM) {
        const __nv_bfloat16* row = q + (static_cast<size_t>(sequence) * heads + kv_head * group + g) * HEAD_DIM;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            const uint2 four = *reinterpret_cast<const uint2*>(row + c * 16 + t * 4);
            queries[c][0] = __byte_perm(four.x, four.y, 0x5410);
            queries[c][1] = __byte_perm(four.x, four.y, 0x7632);
        }
    }

    // sums[c]: columns 16 c + 2 g (elements 0, 1) and the next one (2, 3), each for queries 2 t and 2 t + 1.
    // maximum, denominator: of query g; denominator only over this lane's keys.
    float sums[kChunks][4] = {}, maximum = -INFINITY, denominator = 0.0f;
    const float to_log2 = scale * llmk::kLog2E;
    for (int step = 0; step < steps; ++step) {
        __pipeline_wait_prior(kStages - 2);
        __syncwarp();  // all lanes' copies are visible, and all lanes have used the previous step
        if (step + kStages - 1 < steps) fetch(step + kStages - 1);
        __pipeline_commit();
        const char* tile = queue + step % kStages * Own::kStep;
        const float* scales = reinterpret_cast<const float*>(tile + 2 * Own::kTile);
        const int left = end - first_key - step * kWarps * kKeys;  // keys that exist

        float scores[2][4] = {};  // query g with keys 2 t, 2 t + 1, and 8 further; elements 2 and 3 are padding
#pragma unroll
        for (int c = 0; c < kChunks; c += 2) {
            unsigned words[4];  // four bytes of keys g and g + 8 in chunk c, then in chunk c + 1
            llmk::ldmatrix_x4(words,
                              reinterpret_cast<const __nv_bfloat16*>(tile + Own::offset(lane % 16, c + lane / 16)));
#pragma unroll
            for (int i = 0; i < 4 && c + i / 2 < kChunks; ++i) {
                const unsigned a[4] = {queries[c + i / 2][0], 0, queries[c + i / 2][1], 0};
                llmk::mma_m16n8k16<__nv_bfloat16>(scores[i % 2], a, bf16_pair(words[i]), bf16_pair(words[i] >> 8));
            }
        }

        float most = maximum;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int key = i / 2 * 8 + 2 * t + i % 2;
            float& score = scores[i / 2][i % 2];
            score = key < left ? score * (to_log2 * scales[key]) : -INFINITY;
            most = fmaxf(most, score);
        }
        most = llmk::warp_max<4>(most);
        const float base = llmk::finite_max_or_zero(most);  // a warp may have no key
        const float correction = exp2f(maximum - base);     // 0 for the first keys
        maximum = most;
        unsigned probabilities[2];
        denominator *= correction;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int key = i * 8 + 2 * t;
            const float p0 = exp2f(scores[i][0] - base), p1 = exp2f(scores[i][1] - base);
            denominator += p0 + p1;
            probabilities[i] = llmk::pack_pair<__nv_bfloat16>(p0 * scales[kKeys + key], p1 * scales[kKeys + key + 1]);
        }
        if (__any_sync(llmk::kAllLanes, correction != 1.0f)) {  // a new maximum is rare after the first steps
            const float even = __shfl_sync(llmk::kAllLanes, correction, 8 * t);
            const float odd = __shfl_sync(llmk::kAllLanes, correction, 8 * t + 4);
#pragma unroll
            for (int c = 0; c < kChunks; ++c) {
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[c][e] *= e % 2 == 0 ? even : odd;
            }
        }
        // The values, transposed, are operand A: its rows are columns of the head, and its columns keys.
#pragma unroll
        for (int c = 0; c < kChunks; c += 2) {
            unsigned words[4];  // two bytes of keys 2 t and 2 t + 1, then of keys 8 further, in chunk c; then in c + 1
            llmk::ldmatrix_x4_trans(words, reinterpret_cast<const __nv_bfloat16*>(
                                               tile + Own::kTile + Own::offset(lane % 16, c + lane / 16)));
#pragma unroll
            for (int i = 0; i < 2 && c + i < kChunks; ++i) {
                const unsigned a[4] = {bf16_pair(words[2 * i]), bf16_pair(words[2 * i] >> 8),
                                       bf16_pair(words[2 * i + 1]), bf16_pair(words[2 * i + 1] >> 8)};
                llmk::mma_m16n8k16<__nv_bfloat16>(sums[c + i], a, probabilities[0], probabilities[1]);
            }
        }
    }
    llmk::griddepcontrol_launch_dependents();

    // Combine the results of the warps.
    denominator = llmk::warp_sum<4>(denominator);
    if (t == 0) stats[warp][g] = make_float2(maximum, denominator);
    __syncwarp();  // no lane reads the queue any longer
    float* all = reinterpret_cast<float*>(queue);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            all[(2 * t + e % 2) * Own::kPitch + c * 16 + 2 * g + e / 2] = sums[c][e];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < group * HEAD_DIM; i += kWarps * 32) {
        const int query = i / HEAD_DIM, column = i % HEAD_DIM;
        float most = -INFINITY, weight = 0.0f, sum = 0.0f;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) most = fmaxf(most, stats[w][query].x);
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            const float factor = exp2f(stats[w][query].x - most);  // 0 for a warp without keys
            const float* from = reinterpret_cast<const float*>(reinterpret_cast<const char*>(shared) + w * Own::kBytes);
            weight += factor * stats[w][query].y;
            sum += factor * from[query * Own::kPitch + column];
        }
        const size_t head = static_cast<size_t>(sequence) * heads + kv_head * group + query;
        if (splits == 1) {
            out[head * HEAD_DIM + column] = __float2bfloat16(sum / weight);
        } else {
            part_out[(head * splits + split) * HEAD_DIM + column] = sum;
            if (column == 0) part_stats[head * splits + split] = make_float2(most, weight);
        }
    }
}

// Combine the parts of each query head. No __restrict__ on the inputs: it would let the compiler move the reads of the
// parts before griddepcontrol_wait, where they are not complete.
__global__ void __launch_bounds__(llmk::kCombineThreads)
    combine(const float* part_out, const float2* part_stats, const int* lengths, __nv_bfloat16* out, int heads,
            int head_dim, int splits) {
    const size_t head = blockIdx.x;
    const int total = lengths[blockIdx.x / heads] + 1, part = llmk::keys_per_part(total, splits);
    llmk::griddepcontrol_wait();
    llmk::combine_parts(part_out + head * splits * head_dim, part_stats + head * splits, (total + part - 1) / part,
                        out + head * head_dim, head_dim);
}

// Return the number of parts into which the keys of a sequence are divided, at most `splits`: as many as there are
// blocks that can run at the same time. More parts would only be more sums to combine.
int parts_that_run_at_once(const void* kernel, int bytes, int blocks, int splits) {
    int device = 0, sms = 0, per_sm = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, kWarps * 32, bytes);
    return std::max(1, std::min(splits, sms * per_sm / blocks));
}

template <int HEAD_DIM>
void launch(const __nv_bfloat16* q, const __nv_bfloat16* k_new, const __nv_bfloat16* v_new, const int* lengths,
            unsigned char* k_cache, unsigned char* v_cache, float* k_scales, float* v_scales, float* parts,
            __nv_bfloat16* out, int batch, int heads, int kv_heads, int max_length, int most_splits, float scale,
            cudaStream_t stream) {
    constexpr int kBytes = kWarps * Queue<HEAD_DIM>::kBytes;
    const auto kernel = decode_kernel<HEAD_DIM>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    const int splits =
        parts_that_run_at_once(reinterpret_cast<const void*>(kernel), kBytes, batch * kv_heads, most_splits);
    float2* part_stats = reinterpret_cast<float2*>(parts + static_cast<size_t>(batch) * heads * splits * HEAD_DIM);
    kernel<<<dim3(kv_heads, batch, splits), kWarps * 32, kBytes, stream>>>(q, k_new, v_new, lengths, k_cache, v_cache,
                                                                           k_scales, v_scales, parts, part_stats, out,
                                                                           heads, kv_heads, max_length, splits, scale);
    if (splits == 1) return;
    llmk::launch_dependent(combine, batch * heads, llmk::kCombineThreads, stream, parts, part_stats, lengths, out,
                           heads, HEAD_DIM, splits);
}

extern "C" void fp8_kv_cache(const __nv_bfloat16* q, const __nv_bfloat16* k_new, const __nv_bfloat16* v_new,
                             const int* lengths, unsigned char* k_cache, unsigned char* v_cache, float* k_scales,
                             float* v_scales, float* parts, __nv_bfloat16* out, int batch, int heads, int kv_heads,
                             int head_dim, int max_length, int splits, float scale, cudaStream_t stream) {
    if (batch == 0) return;
    const auto launch_for = head_dim == 4    ? launch<4>
                            : head_dim == 8  ? launch<8>
                            : head_dim == 64 ? launch<64>
                                             : launch<128>;
    launch_for(q, k_new, v_new, lengths, k_cache, v_cache, k_scales, v_scales, parts, out, batch, heads, kv_heads,
               max_length, splits, scale, stream);
}
