// Grouped-query attention, decode: one query per sequence against its KV cache, the keys split over blocks.
//
//   q, out: [batch, heads, head_dim]     k, v: [batch, kv_heads, max_len, head_dim]     lengths: [batch]
//   partial_out: [batch, heads, splits, head_dim]     partial_stats: [batch, heads, splits, 2], both scratch memory
//
// A block owns a part of the keys of one key/value head, and all query heads of its group (up to 8): each key and value
// is fetched once and used for all of them. A queue in shared memory prefetches the data of the next steps. In f32 the
// CUDA cores multiply (Decoder), in 16 bits the tensor cores (TensorDecoder).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>

#include "llmk/decode.cuh"
#include "llmk/decode_tensor.cuh"

template <typename T, typename Decoder>
__global__ void __launch_bounds__(Decoder::kThreads, Decoder::kBlocks)
    decode(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, const int* __restrict__ lengths,
           T* __restrict__ out, float* __restrict__ partial_out, float2* __restrict__ partial_stats, int heads,
           int kv_heads, int max_len, int head_dim, int splits, float scale) {
    constexpr int kHeads = Decoder::kHeads;
    extern __shared__ uint4 shared[];
    const int group = heads / kv_heads, chunks = (group + kHeads - 1) / kHeads;
    const int split = blockIdx.x % splits, chunk = blockIdx.x / splits % chunks;
    const int kv_head = blockIdx.x / splits / chunks % kv_heads, sequence = blockIdx.x / splits / chunks / kv_heads;
    const int head_count = min(kHeads, group - chunk * kHeads);
    const long long first_head = static_cast<long long>(sequence) * heads + kv_head * group + chunk * kHeads;

    const int length = lengths[sequence], part = llmk::keys_per_part(length, splits);
    const long long begin = static_cast<long long>(split) * part;
    const int end = static_cast<int>(min(begin + part, static_cast<long long>(length)));
    if (begin >= end && splits > 1) return;  // the part is empty: the combining kernel skips it
    const int first = static_cast<int>(begin);

    Decoder decoder(q + first_head * head_dim, head_count, head_dim, scale);
    // The addresses of this thread's 16 bytes of the key and the value that the next call of fetch copies.
    const size_t start = (static_cast<size_t>(sequence) * kv_heads + kv_head) * max_len + first + decoder.row;
    const T* next_k = k + start * head_dim + decoder.column;
    const T* next_v = v + start * head_dim + decoder.column;
    int next_key = first + decoder.row;
    auto fetch = [&](uint4* entries) {
#pragma unroll
        for (int i = 0; i < Decoder::kCopies; ++i) {
            const int rows = Decoder::row_offset(i), columns = Decoder::column_offset(i),
                      from = rows * head_dim + columns;
            // the number of bytes that become zeros and are not read
            const int missing = decoder.column + columns < head_dim && next_key + rows < end ? 0 : 16;
            __pipeline_memcpy_async(entries + decoder.offset(i), next_k + from, 16, missing);
            __pipeline_memcpy_async(entries + Decoder::kValues + decoder.offset(i), next_v + from, 16, missing);
        }
        next_key += Decoder::kStep;
        next_k += Decoder::kStep * head_dim;
        next_v += Decoder::kStep * head_dim;
    };

    decoder.process_keys(shared, first, end, fetch);
    llmk::griddepcontrol_launch_dependents();
    decoder.finish(shared, head_count, head_dim, [&](int h, int d, float sum, float block_m, float block_l) {
        if (splits == 1) {
            out[(first_head + h) * head_dim + d] = static_cast<T>(block_l > 0 ? sum / block_l : 0.0f);
        } else {
            const long long place = (first_head + h) * splits + split;
            partial_out[place * head_dim + d] = sum;
            if (d == 0) partial_stats[place] = make_float2(block_m, block_l);
        }
    });
}

// Combine the parts of each query head. No __restrict__ on the inputs: it would let the compiler move the reads of the
// parts before griddepcontrol_wait, where they are not complete.
template <typename T>
__global__ void __launch_bounds__(llmk::kCombineThreads, 1)
    combine(const float* partial_out, const float2* partial_stats, const int* lengths, T* __restrict__ out, int heads,
            int head_dim, int splits) {
    const long long head = blockIdx.x;
    const int length = lengths[blockIdx.x / heads];
    const int part = llmk::keys_per_part(length, splits);
    const int parts = (length + part - 1) / part;
    llmk::griddepcontrol_wait();
    llmk::combine_parts(partial_out + head * splits * head_dim, partial_stats + head * splits, parts,
                        out + head * head_dim, head_dim);
}

template <typename T, typename Decoder>
void launch_decode(const T* q, const T* k, const T* v, const int* lengths, T* out, float* partial_out,
                   float2* partial_stats, int batch, int heads, int kv_heads, int max_len, int head_dim, int splits,
                   float scale, cudaStream_t stream) {
    const auto kernel = decode<T, Decoder>;
    const int chunks = (heads / kv_heads + Decoder::kHeads - 1) / Decoder::kHeads;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Decoder::kBytes);
    kernel<<<batch * kv_heads * chunks * splits, Decoder::kThreads, Decoder::kBytes, stream>>>(
        q, k, v, lengths, out, partial_out, partial_stats, heads, kv_heads, max_len, head_dim, splits, scale);
}

// The decoder for heads of up to DIM columns. Loading a float takes twice as long as loading a 16-bit element, so for
// f32 the CUDA cores have enough time to compute eight heads.
template <typename T, int DIM>
using DecoderFor = std::conditional_t<sizeof(T) == 4, llmk::Decoder<T, DIM / 4, 8>, llmk::TensorDecoder<T, DIM>>;

template <typename T>
void gqa_decode(const T* q, const T* k, const T* v, const int* lengths, T* out, float* partial_out,
                float* partial_stats, int batch, int heads, int kv_heads, int max_len, int head_dim, int splits,
                float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    const auto launch = head_dim <= 64 ? launch_decode<T, DecoderFor<T, 64>> : launch_decode<T, DecoderFor<T, 128>>;
    float2* stats = reinterpret_cast<float2*>(partial_stats);
    launch(q, k, v, lengths, out, partial_out, stats, batch, heads, kv_heads, max_len, head_dim, splits, scale, stream);
    if (splits > 1) {
        llmk::launch_dependent(combine<T>, batch * heads, llmk::kCombineThreads, stream, partial_out, stats, lengths,
                               out, heads, head_dim, splits);
    }
}

extern "C" void gqa_decode_f32(const float* q, const float* k, const float* v, const int* lengths, float* out,
                               float* partial_out, float* partial_stats, int batch, int heads, int kv_heads,
                               int max_len, int head_dim, int splits, float scale, cudaStream_t stream) {
    gqa_decode(q, k, v, lengths, out, partial_out, partial_stats, batch, heads, kv_heads, max_len, head_dim, splits,
               scale, stream);
}

extern "C" void gqa_decode_f16(const __half* q, const __half* k, const __half* v, const int* lengths, __half* out,
                               float* partial_out, float* partial_stats, int batch, int heads, int kv_heads,
                               int max_len, int head_dim, int splits, float scale, cudaStream_t stream) {
    gqa_decode(q, k, v, lengths, out, partial_out, partial_stats, batch, heads, kv_heads, max_len, head_dim, splits,
               scale, stream);
}

extern "C" void gqa_decode_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                const int* lengths, __nv_bfloat16* out, float* partial_out, float* partial_stats,
                                int batch, int heads, int kv_heads, int max_len, int head_dim, int splits, float scale,
                                cudaStream_t stream) {
    gqa_decode(q, k, v, lengths, out, partial_out, partial_stats, batch, heads, kv_heads, max_len, head_dim, splits,
               scale, stream);
}
