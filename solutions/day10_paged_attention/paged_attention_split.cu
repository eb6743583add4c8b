// Paged attention, decode, for long contexts: the keys of a sequence are split over blocks, and the parts combined.
//
//   q, out: [batch, heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch]
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//   partial_out: [batch, heads, splits, head_dim]     partial_stats: [batch, heads, splits, 2], both working memory
//
// Day 7's kernel, whose keys now lie in pages. A block owns a part of the keys of one key/value head and all query heads
// of its group (up to 8). Within it a *team* of 8 or 16 lanes holds a row, 16 bytes a lane, and handles 4 keys in each
// step. Every thread copies what it will use itself to a queue in shared memory, two steps ahead; the page of a key is
// looked up one step before that, so that no copy waits for the table.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>

constexpr int kThreads = 128;
constexpr int kKeys = 4;           // of one team, in one step
constexpr int kStages = 3;         // steps in the queue: one is used, two are on their way
constexpr int kSmallestPart = 64;  // fewer keys are not worth a block
constexpr int kCombineRows = 8;    // at most
constexpr int kLargestHead = 128;
constexpr unsigned kAllLanes = 0xffffffffu;

// How many keys each part has. Parts that would begin past the last key do not exist.
__device__ int keys_per_part(int length, int splits) { return max(kSmallestPart, (length + splits - 1) / splits); }

// 16 bytes of a row as floats.
template <typename T>
__device__ void unpack(uint4 bits, float* values) {
    const T* elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j) values[j] = static_cast<float>(elements[j]);
}

// Sums kCount numbers over a team. Two halves of it exchange what the other is to own: each adds up half of the numbers,
// then quarters do, ... 16 numbers over 16 lanes take 15 exchanges, and not 16 times 4. At the end lane i owns the
// numbers from i * kCount / (lanes of the team) on, in s[0], s[1], ...
template <int kReach, int kCount>
__device__ void sum_over_team(float* s, int lane) {
    if constexpr (kReach > 0 && kCount > 1) {
        const bool upper = (lane & kReach) != 0;
#pragma unroll
        for (int n = 0; n < kCount / 2; ++n) {
            const float keep = upper ? s[n + kCount / 2] : s[n];
            const float give = upper ? s[n] : s[n + kCount / 2];
            s[n] = keep + __shfl_xor_sync(kAllLanes, give, kReach);
        }
        sum_over_team<kReach / 2, kCount / 2>(s, lane);
    } else if constexpr (kReach > 0) {
        s[0] += __shfl_xor_sync(kAllLanes, s[0], kReach);
        sum_over_team<kReach / 2, 1>(s, lane);
    }
}

// Shared memory: the queue, later used for the sums of all teams, and then the teams' maxima and sums.
template <typename T, int kTeam, int kHeads>
struct Shared {
    static constexpr int kQueue = kStages * 2 * kKeys * kThreads;  // entries of 16 bytes
    static constexpr int kSums = kHeads * kThreads * 4 / static_cast<int>(sizeof(T));
    static constexpr int kEntries = kQueue > kSums ? kQueue : kSums;
    static constexpr int kBytes = kEntries * 16 + kThreads / kTeam * kHeads * static_cast<int>(sizeof(float2));
};

template <typename T, int kTeam, int kHeads>
__global__ void __launch_bounds__(kThreads, kHeads <= 4 ? 4 : 2)
    decode(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
           const int* __restrict__ block_tables, const int* __restrict__ lengths, T* __restrict__ out,
           float* __restrict__ partial_out, float2* __restrict__ partial_stats, int heads, int kv_heads, int head_dim,
           int page_size, int max_pages, int splits, float scale) {
    constexpr int kWidth = 16 / sizeof(T);  // elements of a lane
    constexpr int kTeams = kThreads / kTeam;
    constexpr int kStep = kTeams * kKeys;    // keys of the block in one step
    constexpr int kScores = kHeads * kKeys;  // of a team in one step: number h * kKeys + i is head h with key i
    constexpr int kOwn = kScores > kTeam ? kScores / kTeam : 1;   // scores that a lane has after they are summed
    constexpr int kSame = kTeam > kScores ? kTeam / kScores : 1;  // lanes that have the same score
    extern __shared__ uint4 shared[];
    float2* team_stats = reinterpret_cast<float2*>(shared + Shared<T, kTeam, kHeads>::kEntries);  // [kTeams][kHeads]

    const int lane = threadIdx.x % kTeam, team = threadIdx.x / kTeam;
    const int group = heads / kv_heads, chunks = (group + kHeads - 1) / kHeads;
    const int split = blockIdx.x % splits, chunk = blockIdx.x / splits % chunks;
    const int kv_head = blockIdx.x / splits / chunks % kv_heads, sequence = blockIdx.x / splits / chunks / kv_heads;
    const int head_count = min(kHeads, group - chunk * kHeads);
    const long long first_head = static_cast<long long>(sequence) * heads + kv_head * group + chunk * kHeads;

    const int length = lengths[sequence], part = keys_per_part(length, splits);
    const long long begin = static_cast<long long>(split) * part;
    const int end = static_cast<int>(min(begin + part, static_cast<long long>(length)));
    if (begin >= end && splits > 1) return;  // no such part: the combining kernel knows
    const int first = static_cast<int>(begin);

    const int column = lane * kWidth;
    const bool inside = column < head_dim;
    float query[kHeads][kWidth], o[kHeads][kWidth];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (inside && h < head_count) {
            bits = *reinterpret_cast<const uint4*>(q + (first_head + h) * head_dim + column);
        }
        unpack<T>(bits, query[h]);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            query[h][j] *= scale * 1.4426950408889634f;  // exp(x) = exp2(x log2 e)
            o[h][j] = 0;
        }
    }

    const int shift =
        __ffs(page_size) - 1;  // key >> shift is its page's number in the sequence: page_size is a power of 2
    const int* table = block_tables + static_cast<size_t>(sequence) * max_pages;
    const size_t row_offset = static_cast<size_t>(kv_head) * page_size;  // of this head's rows in a page
    int next_key = first + team;                                         // the first one of the next fetch
    int page[kKeys];                                                     // where its keys are
    auto look_up = [&]() {
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const int key = next_key + i * kTeams;
            page[i] = key < end ? table[key >> shift] : 0;  // entries past the last key are never read
        }
    };
    uint4* queue = shared + threadIdx.x;  // entry e of this thread is queue[e * kThreads]
    auto fetch = [&](int stage) {
        uint4* entries = queue + stage * 2 * kKeys * kThreads;
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const int key = next_key + i * kTeams;
            const int missing = inside && key < end ? 0 : 16;  // bytes: zeros, and nothing is read
            const size_t row =
                static_cast<size_t>(page[i]) * kv_heads * page_size + row_offset + (key & (page_size - 1));
            const size_t place = row * head_dim + column;
            __pipeline_memcpy_async(entries + i * kThreads, k + place, 16, missing);
            __pipeline_memcpy_async(entries + (kKeys + i) * kThreads, v + place, 16, missing);
        }
        next_key += kStep;
        look_up();
    };

    const int steps = (end - first + kStep - 1) / kStep;
    look_up();
    for (int step = 0; step < kStages - 1; ++step) {
        if (step < steps) fetch(step);
        __pipeline_commit();
    }

    const int own = kScores > kTeam ? lane * kOwn : lane / kSame;  // the first of this lane's scores: head own / kKeys
    auto lane_of = [](int score) { return kScores > kTeam ? score / kOwn : score * kSame; };
    float m = -INFINITY, l = 0;  // of the head of this lane's scores; l of this lane's keys only
    int stage = 0;
    for (int step = 0; step < steps; ++step) {
        if (step + kStages - 1 < steps) fetch(stage == 0 ? kStages - 1 : stage - 1);
        __pipeline_commit();
        __pipeline_wait_prior(kStages - 1);
        const uint4* entries = queue + stage * 2 * kKeys * kThreads;
        stage = stage == kStages - 1 ? 0 : stage + 1;

        float s[kScores];  // first what this lane's columns add to all scores
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            float key[kWidth];
            unpack<T>(entries[i * kThreads], key);
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
                float sum = 0;
#pragma unroll
                for (int j = 0; j < kWidth; ++j) sum += query[h][j] * key[j];
                s[h * kKeys + i] = sum;
            }
        }

        sum_over_team<kTeam / 2, kScores>(s, lane);

        // The online softmax, each lane with its own scores.
        float new_m = m;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
            const int key = first + step * kStep + (own + j) % kKeys * kTeams + team;
            if (key >= end) s[j] = -INFINITY;
            new_m = fmaxf(new_m, s[j]);
        }
#pragma unroll
        for (int reach = kSame; reach < kSame * kKeys / kOwn; reach *= 2) {  // the other keys of this head
            new_m = fmaxf(new_m, __shfl_xor_sync(kAllLanes, new_m, reach));
        }
        const float base = new_m == -INFINITY ? 0.0f : new_m;  // no key yet: -inf - -inf would be NaN
        const float correction = exp2f(m - base);
        m = new_m;
        l *= correction;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
            s[j] = exp2f(s[j] - base);
            l += s[j];
        }
        if (__any_sync(kAllLanes, correction != 1)) {  // seldom, after the first steps
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
                const float c = __shfl_sync(kAllLanes, correction, lane_of(h * kKeys), kTeam);
#pragma unroll
                for (int j = 0; j < kWidth; ++j) o[h][j] *= c;
            }
        }

        // Weighted sum of the values: the weights come from the lanes that own them.
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            float value[kWidth];
            unpack<T>(entries[(kKeys + i) * kThreads], value);
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
                const int score = h * kKeys + i;
                const float weight = __shfl_sync(kAllLanes, s[score % kOwn], lane_of(score), kTeam);
#pragma unroll
                for (int j = 0; j < kWidth; ++j) o[h][j] += weight * value[j];
            }
        }
    }
#pragma unroll
    for (int reach = kSame; reach < kSame * kKeys / kOwn; reach *= 2) l += __shfl_xor_sync(kAllLanes, l, reach);

    // The teams' sums become one: all are brought to the largest maximum.
    if (lane == lane_of(own / kKeys * kKeys)) team_stats[team * kHeads + own / kKeys] = make_float2(m, l);
    __syncthreads();                                 // and nobody uses the queue any more
    float* sums = reinterpret_cast<float*>(shared);  // [kTeams][kHeads][kTeam * kWidth]
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
        float block_m = -INFINITY;
        for (int t = 0; t < kTeams; ++t) block_m = fmaxf(block_m, team_stats[t * kHeads + h].x);
        const float c = block_m == -INFINITY ? 0.0f : exp2f(team_stats[team * kHeads + h].x - block_m);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sums[((team * kHeads + h) * kWidth + j) * kTeam + lane] = o[h][j] * c;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < head_count * head_dim; i += kThreads) {
        const int h = i / head_dim, d = i % head_dim;
        float block_m = -INFINITY, block_l = 0, sum = 0;
        for (int t = 0; t < kTeams; ++t) block_m = fmaxf(block_m, team_stats[t * kHeads + h].x);
        for (int t = 0; t < kTeams; ++t) {
            const float2 stats = team_stats[t * kHeads + h];
            if (stats.y > 0) block_l += stats.y * exp2f(stats.x - block_m);
            sum += sums[((t * kHeads + h) * kWidth + d % kWidth) * kTeam + d / kWidth];
        }
        if (splits == 1) {
            out[first_head * head_dim + i] = static_cast<T>(block_l > 0 ? sum / block_l : 0.0f);
        } else {
            const long long place = (first_head + h) * splits + split;
            partial_out[place * head_dim + d] = sum;
            if (d == 0) partial_stats[place] = make_float2(block_m, block_l);
        }
    }
}

// One block for each query head adds up its parts: a thread for each column, and several rows of threads that take
// different parts, since with a single row the reads would wait for each other.
template <typename T>
__global__ void combine(const float* __restrict__ partial_out, const float2* __restrict__ partial_stats,
                        const int* __restrict__ lengths, T* __restrict__ out, int heads, int head_dim, int splits) {
    __shared__ float row_m[kCombineRows], row_l[kCombineRows], row_o[kCombineRows][kLargestHead];
    const long long head = blockIdx.x;
    const int length = lengths[blockIdx.x / heads];
    const int part = keys_per_part(length, splits);
    const int parts = (length + part - 1) / part;
    const int d = threadIdx.x, row = threadIdx.y, rows = blockDim.y;
    const float2* stats = partial_stats + head * splits;
    const float* sums = partial_out + head * splits * head_dim + d;
    float m = -INFINITY, l = 0, o = 0;
    for (int p = row; p < parts; p += rows) m = fmaxf(m, stats[p].x);
#pragma unroll 4
    for (int p = row; p < parts; p += rows) {
        const float c = exp2f(stats[p].x - m);
        l += stats[p].y * c;
        o += sums[static_cast<long long>(p) * head_dim] * c;
    }
    row_o[row][d] = o;
    if (d == 0) {
        row_m[row] = m;
        row_l[row] = l;
    }
    __syncthreads();
    if (row > 0) return;
    for (int r = 0; r < rows; ++r) m = fmaxf(m, row_m[r]);
    l = o = 0;
    for (int r = 0; r < rows; ++r) {
        const float c = row_l[r] > 0 ? exp2f(row_m[r] - m) : 0.0f;
        l += row_l[r] * c;
        o += row_o[r][d] * c;
    }
    out[head * head_dim + d] = static_cast<T>(l > 0 ? o / l : 0.0f);  // a sequence without keys gives zeros
}

template <typename T, int kTeam, int kHeads>
void launch_decode(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths, T* out,
                   float* partial_out, float2* partial_stats, int batch, int heads, int kv_heads, int head_dim,
                   int page_size, int max_pages, int splits, float scale, cudaStream_t stream) {
    const auto kernel = decode<T, kTeam, kHeads>;
    const int bytes = Shared<T, kTeam, kHeads>::kBytes;
    const int chunks = (heads / kv_heads + kHeads - 1) / kHeads;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<batch * kv_heads * chunks * splits, kThreads, bytes, stream>>>(
        q, k, v, block_tables, lengths, out, partial_out, partial_stats, heads, kv_heads, head_dim, page_size,
        max_pages, splits, scale);
}

template <typename T>
void paged_attention_split(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                           T* out, float* partial_out, float* partial_stats, int batch, int heads, int kv_heads,
                           int head_dim, int page_size, int max_pages, int splits, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    const bool narrow = head_dim <= 64, few = heads / kv_heads <= 4;
    const auto launch = narrow ? few ? launch_decode<T, 8, 4> : launch_decode<T, 8, 8>
                        : few  ? launch_decode<T, 16, 4>
                               : launch_decode<T, 16, 8>;
    float2* stats = reinterpret_cast<float2*>(partial_stats);
    launch(q, k_cache, v_cache, block_tables, lengths, out, partial_out, stats, batch, heads, kv_heads, head_dim,
           page_size, max_pages, splits, scale, stream);
    if (splits > 1) {
        const dim3 threads(head_dim, min(kCombineRows, (splits + 3) / 4));
        combine<<<batch * heads, threads, 0, stream>>>(partial_out, stats, lengths, out, heads, head_dim, splits);
    }
}

extern "C" void paged_attention_split_f16(const __half* q, const __half* k_cache, const __half* v_cache,
                                          const int* block_tables, const int* lengths, __half* out, float* partial_out,
                                          float* partial_stats, int batch, int heads, int kv_heads, int head_dim,
                                          int page_size, int max_pages, int splits, float scale, cudaStream_t stream) {
    paged_attention_split(q, k_cache, v_cache, block_tables, lengths, out, partial_out, partial_stats, batch, heads,
                          kv_heads, head_dim, page_size, max_pages, splits, scale, stream);
}

extern "C" void paged_attention_split_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k_cache,
                                           const __nv_bfloat16* v_cache, const int* block_tables, const int* lengths,
                                           __nv_bfloat16* out, float* partial_out, float* partial_stats, int batch,
                                           int heads, int kv_heads, int head_dim, int page_size, int max_pages,
                                           int splits, float scale, cudaStream_t stream) {
    paged_attention_split(q, k_cache, v_cache, block_tables, lengths, out, partial_out, partial_stats, batch, heads,
                          kv_heads, head_dim, page_size, max_pages, splits, scale, stream);
}
