// Paged prefill with a warp for 4 rows: a lane computes the score of one key, then holds some columns of the output.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// Returns the offset of a key's row in the cache.
__device__ size_t place_of(const int* table, int key, int kv_head, int kv_heads, int page_size, int head_dim) {
    const size_t page = table[key / page_size];
    return ((page * kv_heads + kv_head) * page_size + key % page_size) * head_dim;
}

constexpr int kWarps = 16;
constexpr int kEach = 4;  // rows that a warp computes
constexpr int kKeys = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

template <typename T, int DIM>
__global__ void attend(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths,
                       const int* query_starts, T* out, int heads, int kv_heads, int head_dim, int page_size,
                       int max_pages, float scale) {
    constexpr int kPitch = DIM + 4 / sizeof(T);  // one word of padding, so neighboring rows are in different banks
    __shared__ T k_tile[kKeys * kPitch];
    __shared__ T v_tile[kKeys * kPitch];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = heads / kv_heads;
    const int kv_head = blockIdx.y % kv_heads, b = blockIdx.y / kv_heads;
    const int start = query_starts[b], query_len = query_starts[b + 1] - start, key_len = lengths[b];
    const int* table = block_tables + static_cast<size_t>(b) * max_pages;
    const long long rows = static_cast<long long>(query_len) * group;
    if (static_cast<long long>(blockIdx.x) * kWarps * kEach >= rows) return;  // the same for all threads of the block
    const long long first_row = static_cast<long long>(blockIdx.x) * kWarps * kEach;
    auto place = [&](long long row) {
        return ((static_cast<size_t>(start) + row / group) * heads + kv_head * group + row % group) * head_dim;
    };

    float query[kEach][DIM / 32] = {}, o[kEach][DIM / 32] = {}, m[kEach], l[kEach];
    for (int i = 0; i < kEach; ++i) {
        const long long row = first_row + warp * kEach + i;
        for (int c = 0; c < DIM / 32; ++c) {
            const int d = lane + 32 * c;
            if (row < rows && d < head_dim) query[i][c] = static_cast<float>(q[place(row) + d]) * scale;
        }
        m[i] = -INFINITY;
        l[i] = 0;
    }
    for (int first = 0; first < key_len; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < kKeys * head_dim; i += blockDim.x) {
            const int key = i / head_dim, d = i % head_dim;
            const bool there = first + key < key_len;
            const size_t at = there ? place_of(table, first + key, kv_head, kv_heads, page_size, head_dim) + d : 0;
            k_tile[key * kPitch + d] = there ? k[at] : static_cast<T>(0.0f);
            v_tile[key * kPitch + d] = there ? v[at] : static_cast<T>(0.0f);
        }
        __syncthreads();
        for (int i = 0; i < kEach; ++i) {
            const long long row = first_row + warp * kEach + i;
            if (row >= rows) break;
            const int visible = row / group + key_len - query_len + 1;
            float score = 0;
            for (int c = 0; c < DIM / 32; ++c) {
                for (int d = 32 * c; d < min(32 * c + 32, head_dim); ++d) {
                    score +=
                        __shfl_sync(kAllLanes, query[i][c], d % 32) * static_cast<float>(k_tile[lane * kPitch + d]);
                }
            }
            if (first + lane >= visible || first + lane >= key_len) score = -INFINITY;
            float new_m = fmaxf(m[i], score);
            for (int reach = 16; reach > 0; reach /= 2) new_m = fmaxf(new_m, __shfl_xor_sync(kAllLanes, new_m, reach));
            if (new_m == -INFINITY) continue;
            const float correction = expf(m[i] - new_m), p = expf(score - new_m);
            m[i] = new_m;
            l[i] = l[i] * correction + p;
            for (int c = 0; c < DIM / 32; ++c) o[i][c] *= correction;
            for (int key = 0; key < kKeys; ++key) {
                const float weight = __shfl_sync(kAllLanes, p, key);
                for (int c = 0; c < DIM / 32; ++c) {
                    const int d = lane + 32 * c;
                    if (d < head_dim) o[i][c] += weight * static_cast<float>(v_tile[key * kPitch + d]);
                }
            }
        }
    }
    for (int i = 0; i < kEach; ++i) {
        const long long row = first_row + warp * kEach + i;
        if (row >= rows) break;
        float sum = l[i];
        for (int reach = 16; reach > 0; reach /= 2) sum += __shfl_xor_sync(kAllLanes, sum, reach);
        for (int c = 0; c < DIM / 32; ++c) {
            const int d = lane + 32 * c;
            if (d < head_dim) out[place(row) + d] = static_cast<T>(sum > 0 ? o[i][c] / sum : 0.0f);
        }
    }
}

template <typename T>
void paged_prefill(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                   const int* query_starts, T* out, int batch, int tokens, int heads, int kv_heads, int head_dim,
                   int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    if (batch == 0 || tokens == 0 || heads == 0 || head_dim == 0) return;
    const long long rows = static_cast<long long>(max_queries) * (heads / kv_heads);
    const dim3 grid((rows + (kWarps * kEach) - 1) / (kWarps * kEach), batch * kv_heads);
    const auto kernel = head_dim <= 64 ? attend<T, 64> : attend<T, 128>;
    kernel<<<grid, 32 * kWarps, 0, stream>>>(q, k_cache, v_cache, block_tables, lengths, query_starts, out, heads,
                                             kv_heads, head_dim, page_size, max_pages, scale);
}
