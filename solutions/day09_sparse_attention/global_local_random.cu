// Attention over global, neighbouring and random keys, f32.
//
// A warp owns a query. Its four groups of 8 lanes take every fourth key of the list, each with its own maximum, sum and
// weighted sum (day 6: summaries of disjoint sets of keys merge); a row of k or v is read by 8 lanes side by side.
//
//   q, k, v, out: [batch, heads, len, DIM]     DIM: 32, 64 or 128
//   random_keys: [len, randoms]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kWarps = 4;   // of a block: one query each
constexpr int kGroups = 4;  // of a warp: one key each at a time
constexpr int kLanes = 32 / kGroups;

__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

__device__ __forceinline__ float4 scaled_sum(float4 a, float x, float4 b, float y) {
    return make_float4(a.x * x + b.x * y, a.y * x + b.y * y, a.z * x + b.z * y, a.w * x + b.w * y);
}

// Which keys a query sees: `count` candidates, of which key(query, i) is the i-th, or -1 where it has been named before.
struct Pattern {
    const int* random_keys;
    int len, globals, window, randoms;

    // The neighbours: for a global query, all keys.
    __device__ int from(int query) const { return query < globals ? 0 : max(0, query - window); }
    __device__ int to(int query) const { return query < globals ? len : min(len, query + window + 1); }

    __device__ int count(int query) const { return to(query) - from(query) + min(globals, len) + randoms; }
    __device__ int key(int query, int i) const {
        const int begin = from(query), end = to(query);
        if (i < end - begin) return begin + i;
        i -= end - begin;
        if (i < min(globals, len)) return i >= begin && i < end ? -1 : i;
        i -= min(globals, len);
        const int* mine = random_keys + static_cast<long long>(query) * randoms;
        const int key = mine[i];
        if (key < globals || key >= len || (key >= begin && key < end)) return -1;
        for (int j = 0; j < i; ++j) {
            if (mine[j] == key) return -1;
        }
        return key < 0 ? -1 : key;
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

extern "C" void global_local_random(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                                    int batch, int heads, int len, int head_dim, int globals, int window, int randoms,
                                    float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * len;
    if (rows == 0) return;
    const Pattern pattern = {random_keys, len, globals, window, randoms};
    const auto kernel = head_dim == 32 ? attend<32> : head_dim == 64 ? attend<64> : attend<128>;
    kernel<<<static_cast<unsigned>((rows + kWarps - 1) / kWarps), 32 * kWarps, 0, stream>>>(q, k, v, pattern, out, rows,
                                                                                            len, len, scale);
}
