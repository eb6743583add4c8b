// Paged attention, prefill: the new queries of several sequences, one behind the other, against a KV cache in pages.
//
//   q, out: [tokens, heads, head_dim], sequence b has the queries query_starts[b] ... query_starts[b + 1] - 1
//   k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch], keys of each sequence
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//
// Day 7's kernel. Row r of key/value head g is query r / group of head g * group + r % group, and a block of 128 threads
// walks over the keys once for 64 such rows. Only the addresses differ: of a query through query_starts, of a key through
// the block table. Thread (ty, tx) has rows 4 ty ... 4 ty + 3, of the scores keys tx, tx + 8, tx + 16 and tx + 24, and of
// the output the columns 4 tx ... 4 tx + 3 of every 32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>

constexpr int kThreads = 128;
constexpr int kRows = 64;  // of a tile: queries of all heads of the group
constexpr int kKeys = 32;  // of a tile
constexpr int kEach = 4;   // rows of a thread, and its keys
constexpr unsigned kAllLanes = 0xffffffffu;

template <int DIM>
struct Shape {
    static constexpr int kPitch = DIM / 4 + 1;  // float4s from row to row: odd, so that 8 rows lie in different banks
    static constexpr int kWeightPitch = kKeys / 4 + 1;
    static constexpr int kSharedBytes = (kRows * kPitch + 2 * kKeys * kPitch + kRows * kWeightPitch) * 16;
};

// 16 bytes of a row become floats in shared memory.
template <typename T>
__device__ void store_floats(float4* target, uint4 bits, float factor) {
    const T* elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); j += 4) {
        target[j / 4] =
            make_float4(static_cast<float>(elements[j]) * factor, static_cast<float>(elements[j + 1]) * factor,
                        static_cast<float>(elements[j + 2]) * factor, static_cast<float>(elements[j + 3]) * factor);
    }
}

// Copies kCount rows to shared memory, as floats; zeros where address(row) is null, and in columns that do not exist.
template <typename T, int DIM, int kCount, typename Address>
__device__ void load_tile(float4* tile, int head_dim, float factor, Address address) {
    constexpr int kWidth = 16 / sizeof(T), kPieces = DIM / kWidth;
#pragma unroll 4
    for (int i = threadIdx.x; i < kCount * kPieces; i += kThreads) {
        const int row = i / kPieces, column = i % kPieces * kWidth;
        const T* source = address(row);
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (source != nullptr && column < head_dim) bits = *reinterpret_cast<const uint4*>(source + column);
        store_floats<T>(tile + row * Shape<DIM>::kPitch + column / 4, bits, factor);
    }
}

// Four neighbouring elements in one access of 8 or 16 bytes.
template <typename T>
__device__ void store_four(T* target, float a, float b, float c, float d) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
    Bits bits;
    T* elements = reinterpret_cast<T*>(&bits);
    elements[0] = static_cast<T>(a);
    elements[1] = static_cast<T>(b);
    elements[2] = static_cast<T>(c);
    elements[3] = static_cast<T>(d);
    *reinterpret_cast<Bits*>(target) = bits;
}

template <typename T, int DIM>
__global__ void __launch_bounds__(kThreads, 2)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
           const int* __restrict__ block_tables, const int* __restrict__ lengths, const int* __restrict__ query_starts,
           T* __restrict__ out, int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale) {
    constexpr int kPitch = Shape<DIM>::kPitch, kWeightPitch = Shape<DIM>::kWeightPitch;
    constexpr int kChunks = DIM / 32;  // float4s of the output that a thread has in each of its rows
    extern __shared__ float4 shared[];
    float4* q_tile = shared;                    // [kRows][kPitch]
    float4* k_tile = q_tile + kRows * kPitch;   // [kKeys][kPitch]
    float4* v_tile = k_tile + kKeys * kPitch;   // [kKeys][kPitch]
    float4* weights = v_tile + kKeys * kPitch;  // [kRows][kWeightPitch]

    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    const int group = heads / kv_heads;
    const int kv_head = blockIdx.y % kv_heads, sequence = blockIdx.y / kv_heads;
    const int first_query = query_starts[sequence], query_len = query_starts[sequence + 1] - first_query;
    const int key_len = lengths[sequence];
    const long long rows = static_cast<long long>(query_len) * group;
    const long long first_row = static_cast<long long>(gridDim.x - 1 - blockIdx.x) * kRows;  // long rows start first
    if (first_row >= rows) return;
    const int* table = block_tables + static_cast<size_t>(sequence) * max_pages;
    const int shift = __ffs(page_size) - 1;  // key >> shift is its page's number in the sequence: a power of 2

    // Where a row begins in q and out, and a key in the cache, counted in elements.
    auto place = [&](long long row) {
        return ((first_query + row / group) * heads + kv_head * group + row % group) * head_dim;
    };
    auto key_place = [&](int key) {
        const size_t page = table[key >> shift];
        return ((page * kv_heads + kv_head) * page_size + (key & (page_size - 1))) * head_dim;
    };
    // How many keys a row sees: keys 0 ... query + key_len - query_len.
    auto visible = [&](long long row) { return row / group + key_len - query_len + 1; };
    const long long last_row = min(first_row + kRows, rows) - 1;
    const int key_end = static_cast<int>(max(0LL, visible(last_row)));  // no row of the tile sees more

    load_tile<T, DIM, kRows>(q_tile, head_dim, scale * 1.4426950408889634f,  // exp(x) = exp2(x log2 e)
                             [&](int row) { return first_row + row < rows ? q + place(first_row + row) : nullptr; });

    float o[kEach][4 * kChunks] = {};
    float m[kEach], l[kEach];
    int seen[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        m[i] = -INFINITY;
        l[i] = 0;
        seen[i] = static_cast<int>(max(0LL, visible(min(first_row + kEach * ty + i, last_row))));
    }

    for (int first_key = 0; first_key < key_end; first_key += kKeys) {
        __syncthreads();  // everyone is done with the tile before
        auto row_of = [&](const T* x) {
            return [=](int row) { return first_key + row < key_end ? x + key_place(first_key + row) : nullptr; };
        };
        load_tile<T, DIM, kKeys>(k_tile, head_dim, 1.0f, row_of(k));
        load_tile<T, DIM, kKeys>(v_tile, head_dim, 1.0f, row_of(v));
        __syncthreads();  // the tile is here

        float s[kEach][kEach] = {};
#pragma unroll 2
        for (int c = 0; c < DIM / 4; ++c) {
            float4 key[kEach];
#pragma unroll
            for (int j = 0; j < kEach; ++j) key[j] = k_tile[(tx + 8 * j) * kPitch + c];
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                const float4 query = q_tile[(kEach * ty + i) * kPitch + c];
#pragma unroll
                for (int j = 0; j < kEach; ++j) {
                    s[i][j] += query.x * key[j].x + query.y * key[j].y + query.z * key[j].z + query.w * key[j].w;
                }
            }
        }

        // The online softmax. The 8 threads of a row are neighbouring lanes. Weight [row][4 tx + j] is that of key tx + 8 j.
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            float new_m = m[i];
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                if (first_key + tx + 8 * j >= seen[i]) s[i][j] = -INFINITY;
                new_m = fmaxf(new_m, s[i][j]);
            }
#pragma unroll
            for (int reach = 1; reach < 8; reach *= 2) new_m = fmaxf(new_m, __shfl_xor_sync(kAllLanes, new_m, reach));
            const float base = new_m == -INFINITY ? 0.0f : new_m;  // no key seen yet: -inf - -inf would be NaN
            const float correction = exp2f(m[i] - base);
            m[i] = new_m;
            l[i] *= correction;
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                s[i][j] = exp2f(s[i][j] - base);
                l[i] += s[i][j];  // of this thread's keys; the 8 sums are added at the end
            }
#pragma unroll
            for (int d = 0; d < 4 * kChunks; ++d) o[i][d] *= correction;
            weights[(kEach * ty + i) * kWeightPitch + tx] = make_float4(s[i][0], s[i][1], s[i][2], s[i][3]);
        }
        __syncwarp();  // the weights of a row are written and read by the same warp

#pragma unroll 2
        for (int x = 0; x < 8; ++x) {  // keys x, x + 8, x + 16, x + 24
            float4 p[kEach];
#pragma unroll
            for (int i = 0; i < kEach; ++i) p[i] = weights[(kEach * ty + i) * kWeightPitch + x];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
#pragma unroll
                for (int c = 0; c < kChunks; ++c) {
                    const float4 value = v_tile[(x + 8 * j) * kPitch + tx + 8 * c];
#pragma unroll
                    for (int i = 0; i < kEach; ++i) {
                        const float weight = j == 0 ? p[i].x : j == 1 ? p[i].y : j == 2 ? p[i].z : p[i].w;
                        o[i][4 * c] += weight * value.x;
                        o[i][4 * c + 1] += weight * value.y;
                        o[i][4 * c + 2] += weight * value.z;
                        o[i][4 * c + 3] += weight * value.w;
                    }
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        float sum = l[i];
#pragma unroll
        for (int reach = 1; reach < 8; reach *= 2) sum += __shfl_xor_sync(kAllLanes, sum, reach);
        const float inverse = sum > 0 ? 1 / sum : 0;  // a query that sees no key gives zeros
        const long long row = first_row + kEach * ty + i;
        if (row >= rows) continue;
        T* target = out + place(row);
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            const int column = 32 * c + 4 * tx;
            if (column < head_dim) {
                store_four(target + column, o[i][4 * c] * inverse, o[i][4 * c + 1] * inverse, o[i][4 * c + 2] * inverse,
                           o[i][4 * c + 3] * inverse);
            }
        }
    }
}

template <typename T, int DIM>
void launch_attend(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                   const int* query_starts, T* out, int batch, int heads, int kv_heads, int head_dim, int page_size,
                   int max_pages, int max_queries, float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(max_queries) * (heads / kv_heads);
    const dim3 grid(static_cast<unsigned>((rows + kRows - 1) / kRows), batch * kv_heads);
    constexpr int kBytes = Shape<DIM>::kSharedBytes;
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    attend<T, DIM><<<grid, kThreads, kBytes, stream>>>(q, k_cache, v_cache, block_tables, lengths, query_starts, out,
                                                       heads, kv_heads, head_dim, page_size, max_pages, scale);
}

template <typename T>
void paged_prefill(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                   const int* query_starts, T* out, int batch, int tokens, int heads, int kv_heads, int head_dim,
                   int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    if (batch == 0 || tokens == 0 || heads == 0 || head_dim == 0) return;
    const auto launch = head_dim <= 32   ? launch_attend<T, 32>
                        : head_dim <= 64 ? launch_attend<T, 64>
                        : head_dim <= 96 ? launch_attend<T, 96>
                                         : launch_attend<T, 128>;
    launch(q, k_cache, v_cache, block_tables, lengths, query_starts, out, batch, heads, kv_heads, head_dim, page_size,
           max_pages, max_queries, scale, stream);
}

extern "C" void paged_prefill_f16(const __half* q, const __half* k_cache, const __half* v_cache,
                                  const int* block_tables, const int* lengths, const int* query_starts, __half* out,
                                  int batch, int tokens, int heads, int kv_heads, int head_dim, int page_size,
                                  int max_pages, int max_queries, float scale, cudaStream_t stream) {
    paged_prefill(q, k_cache, v_cache, block_tables, lengths, query_starts, out, batch, tokens, heads, kv_heads,
                  head_dim, page_size, max_pages, max_queries, scale, stream);
}

extern "C" void paged_prefill_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                                   const int* block_tables, const int* lengths, const int* query_starts,
                                   __nv_bfloat16* out, int batch, int tokens, int heads, int kv_heads, int head_dim,
                                   int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    paged_prefill(q, k_cache, v_cache, block_tables, lengths, query_starts, out, batch, tokens, heads, kv_heads,
                  head_dim, page_size, max_pages, max_queries, scale, stream);
}
