// Sparse attention, f32, over any pattern: each query has its own list of keys, in CSR.
//
// A warp owns a query. Its four groups of 8 lanes take every fourth key of the list, each with its own maximum, sum and
// weighted sum (day 6: summaries of disjoint sets of keys merge); a row of k or v is read by 8 lanes side by side.
//
//   q, k, v, out: [batch, heads, query_len or key_len, DIM]     DIM: 32, 64 or 128
//   offsets: [query_len + 1]     indices: query i sees the keys indices[offsets[i]] ... indices[offsets[i + 1] - 1]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kWarps = 4;   // of a block: one query each
constexpr int kGroups = 4;  // of a warp: one key each at a time
constexpr int kLanes = 32 / kGroups;

__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

__device__ __forceinline__ float4 scaled_sum(float4 a, float x, float4 b, float y) {
    return make_float4(a.x * x + b.x * y, a.y * x + b.y * y, a.z * x + b.z * y, a.w * x + b.w * y);
}

// Which keys a query sees: `count` candidates, of which key(query, i) is the i-th, or -1 where it is none.
struct Pattern {
    const int* offsets;
    const int* indices;
    int key_len;

    __device__ int count(int query) const { return offsets[query + 1] - offsets[query]; }
    __device__ int key(int query, int i) const {
        const int index = indices[offsets[query] + i];
        return index >= 0 && index < key_len ? index : -1;
    }
};

template <int DIM>
__global__ void attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                       Pattern pattern, float* __restrict__ out, long long rows, int query_len, int key_len,
                       float scale) {
    constexpr int kChunks = DIM / 4 / kLanes;  // of 16 bytes, that a lane has of a row
    const long long id = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
    if (id >= rows) return;
    const int query = static_cast<int>(id % query_len);
    const int group = threadIdx.x % 32 / kLanes, lane = threadIdx.x % kLanes;
    const long long first_key = id / query_len * key_len;
    const float4* keys = reinterpret_cast<const float4*>(k) + first_key * (DIM / 4) + lane;
    const float4* values = reinterpret_cast<const float4*>(v) + first_key * (DIM / 4) + lane;

    float4 q_row[kChunks], o[kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
        q_row[c] = reinterpret_cast<const float4*>(q)[id * (DIM / 4) + c * kLanes + lane];
        o[c] = make_float4(0, 0, 0, 0);
    }
    float m = -INFINITY, l = 0;

    const int count = pattern.count(query);
    for (int first = 0; first < count; first += kGroups) {
        // No key: past the end of the list, or not a key that counts. All lanes go on to the shuffles.
        const int key = first + group < count ? pattern.key(query, first + group) : -1;
        float s = 0;
        if (key >= 0) {
#pragma unroll
            for (int c = 0; c < kChunks; ++c) {
                s += dot(q_row[c], keys[static_cast<long long>(key) * (DIM / 4) + c * kLanes]);
            }
        }
#pragma unroll
        for (int step = 1; step < kLanes; step *= 2) s += __shfl_xor_sync(0xffffffff, s, step);
        if (key < 0) continue;
        s *= scale;
        const float new_m = fmaxf(m, s);
        const float correction = expf(m - new_m), p = expf(s - new_m);
        m = new_m;
        l = l * correction + p;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            o[c] = scaled_sum(o[c], correction, values[static_cast<long long>(key) * (DIM / 4) + c * kLanes], p);
        }
    }

    // Merge the groups' summaries: first pairs of groups, then pairs of pairs.
#pragma unroll
    for (int step = kLanes; step < 32; step *= 2) {
        const float other_m = __shfl_xor_sync(0xffffffff, m, step), other_l = __shfl_xor_sync(0xffffffff, l, step);
        const float new_m = fmaxf(m, other_m);
        const float base = new_m == -INFINITY ? 0.0f : new_m;  // neither has seen a key: -inf - -inf would be NaN
        const float mine = expf(m - base), theirs = expf(other_m - base);
        m = new_m;
        l = l * mine + other_l * theirs;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            const float4 other =
                make_float4(__shfl_xor_sync(0xffffffff, o[c].x, step), __shfl_xor_sync(0xffffffff, o[c].y, step),
                            __shfl_xor_sync(0xffffffff, o[c].z, step), __shfl_xor_sync(0xffffffff, o[c].w, step));
            o[c] = scaled_sum(o[c], mine, other, theirs);
        }
    }
    if (group != 0) return;
    const float inverse = l > 0 ? 1 / l : 0.0f;  // a query that sees no key gives zeros
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
        reinterpret_cast<float4*>(out)[id * (DIM / 4) + c * kLanes + lane] =
            make_float4(o[c].x * inverse, o[c].y * inverse, o[c].z * inverse, o[c].w * inverse);
    }
}

extern "C" void csr_attention(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                              float* out, int batch, int heads, int query_len, int key_len, int head_dim, float scale,
                              cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0) return;
    const Pattern pattern = {offsets, indices, key_len};
    const auto kernel = head_dim == 32 ? attend<32> : head_dim == 64 ? attend<64> : attend<128>;
    kernel<<<static_cast<unsigned>((rows + kWarps - 1) / kWarps), 32 * kWarps, 0, stream>>>(q, k, v, pattern, out, rows,
                                                                                            query_len, key_len, scale);
}
