// A whole model in one kernel: one launch reads the last token and writes the next one.
//
// When one sequence decodes, a token costs the time in which the weights come from memory, if nothing else takes time. A
// kernel for each operator spends more on starting, filling and draining than on its weights. Here one block stays on
// each SM, and all walk through a list of phases. Weights depend on nothing, so one warp of each block, the *producer*,
// fetches the block's rows of all phases in order to a ring in shared memory, as far ahead as the ring allows.
//
// The blocks never meet at a barrier. What one computes and others need travels in words of 64 bits: 32 bits of data and
// the number of the phase that wrote them (its *epoch*). A word is written and read as a whole, so who finds the epoch
// that it waits for has the data, too: one trip through the L2 cache, where a barrier takes four (fence, count, watch,
// read). (NCCL calls this its LL, "low latency", protocol.) A word may be written again as soon as all who read it have
// written something that its writer, in the end, waited for; the order of the phases sees to that.
//
// The list of phases is data (persistent_decode.py makes it from a model): this file knows operators, not models.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <climits>
#include <cstdint>

#include "llmk/decode.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/reduce.cuh"

namespace {

constexpr int kWorkers = 16;  // warps that compute
constexpr int kWorkerThreads = 32 * kWorkers;
constexpr int kThreads = kWorkerThreads + 32;  // and the producer's warp
constexpr int kMostStages = 32;                // of the ring
constexpr int kMostVectors = 6;                // pieces of 8 columns that a lane holds of a product's input
constexpr int kMostWords = 4;                  // words that a thread holds of what is normalised
constexpr int kMostHead = 256;
constexpr int kWorkersMeet = 1;  // number of the workers' barrier
constexpr float kLog2OfE = 1.44269504f;

enum Kind { kEmbed, kLinear, kAttention, kAdvance };
enum Input { kRmsNormOfX, kLayerNormOfX, kAttended, kHidden };
enum Output { kQueryKeyValue, kAddToX, kGelu, kGateUp, kLogits };

using Word = unsigned long long;

// One entry of the list, 16 numbers; persistent_decode.py has the same names in the same order. Offsets count elements.
struct Phase {
    long long kind;
    long long weights;        // linear: where the matrix [rows, columns] begins; embed: the table [vocabulary, width]
    long long rows, columns;  // of the matrix; embed: rows is the width
    long long together;  // so many neighbouring rows are one thread's: 4 for a gate and its up, 1 for logits, else 2
    long long input, output;    // linear
    long long norm, norm_bias;  // where they begin in parameters, or -1
    long long bias;             // the same
    long long layer;            // whose keys and values
    long long warps;            // that share a row: 1, 2, 4, 8 or 16
    long long shift;            // which blocks get one row more than others; the same for all phases that add to x
    long long source;           // the phase that publishes what this one reads
    long long publishes;        // add to x: whether x is complete after this phase
    long long reserved;
};

// What all phases share. T is __half or __nv_bfloat16.
template <typename T>
struct Model {
    const T* weights;         // all matrices
    const float* parameters;  // weights and biases of norms, biases of products
    const float* rope;        // [positions, rotary / 2, 2]: cosine and sine
    const Phase* phases;
    T* keys;             // [layers, pages, kv_heads, page_size, head_dim]
    T* values;           // the same
    const int* table;    // [most pages of a sequence]: the page that holds rows page_size * i ...
    int* tokens;         // [most tokens]: the prompt, then what was generated
    int* state;          // [2]: the position of the token that is read, so many keys are in the cache; launches before
    float* x;            // [width]: the residual stream, each number read and written by one thread alone
    Word* x_words;       // [width / 2]: the same, rounded to T, for all
    Word* qkv_words;     // [heads + 2 kv_heads, head_dim]: floats
    Word* part_words;    // [heads, splits, head_dim + 1]: floats: what a part of the keys gives, and log2 of its sum
    Word* hidden_words;  // [intermediate / 2]: pairs of T
    float* logits;       // [vocabulary]
    unsigned* arrivals;  // [1]: zero between launches
    Word* best;          // [1]: zero between launches
    int phase_count;     // of a whole token
    int width;           // hidden size
    int heads, kv_heads, head_dim, rotary, page_size, pages, splits;
    float epsilon, scale;
};

// What a block keeps in shared memory.
struct Shared {
    unsigned char* ring;  // [stages, stage_bytes]
    uint64_t *full, *empty;
    void* input;          // [most columns] of T; or [kWorkers, head_dim] floats
    float* sums;          // [most rows of a block, warps that share a row]
    const float2* angle;  // [rotary / 2]: cosine and sine of this position
    int stages, stage_bytes;

    __device__ int rows_in_stage(const Phase& phase) const {
        return max(1, stage_bytes / static_cast<int>(phase.columns * 2));
    }
    __device__ unsigned char* stage(int number) const { return ring + static_cast<long long>(number) * stage_bytes; }
};

struct Share {
    int first, end;  // rows
};

// This block's rows of a phase.
__device__ __forceinline__ Share share_of(const Phase& phase) {
    const int block = static_cast<int>((blockIdx.x + phase.shift) % gridDim.x);
    const long long units = phase.rows / phase.together;
    return {static_cast<int>(units * block / gridDim.x * phase.together),
            static_cast<int>(units * (block + 1) / gridDim.x * phase.together)};
}

__device__ __forceinline__ void workers_meet() { llmk::meet(kWorkersMeet, kWorkerThreads); }

// ---- words ----

__device__ __forceinline__ void publish(Word* to, unsigned data, unsigned epoch) {
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(static_cast<Word>(epoch) << 32 | data)
                 : "memory");
}
__device__ __forceinline__ void publish(Word* to, float value, unsigned epoch) {
    publish(to, __float_as_uint(value), epoch);
}

__device__ __forceinline__ Word look(const Word* at) {
    Word word;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

// Until all COUNT words, those of number i at `at + i * stride` and i < count, are of this epoch: their data. All are asked
// for before the first is looked at, so that they take one trip to the L2 cache and not COUNT.
template <int COUNT>
__device__ __forceinline__ void await_words(unsigned (&data)[COUNT], const Word* at, int stride, int count,
                                            unsigned epoch) {
    bool all;
    do {
        Word words[COUNT];
        all = true;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (i < count) words[i] = look(at + static_cast<long long>(i) * stride);
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (i < count) {
                data[i] = static_cast<unsigned>(words[i]);
                all = all && static_cast<unsigned>(words[i] >> 32) == epoch;
            }
        }
    } while (!all);
}

// Two numbers of T in 32 bits.
template <typename T>
struct Two {
    T values[2];
};
template <typename T>
__device__ __forceinline__ unsigned pack(float first, float second) {
    const Two<T> two = {{static_cast<T>(first), static_cast<T>(second)}};
    unsigned bits;
    memcpy(&bits, &two, 4);
    return bits;
}
template <typename T>
__device__ __forceinline__ float2 unpack_two(unsigned bits) {
    Two<T> two;
    memcpy(&two, &bits, 4);
    return make_float2(static_cast<float>(two.values[0]), static_cast<float>(two.values[1]));
}

// ---- the producer ----

__device__ __forceinline__ void copy_bulk(void* to, const void* from, unsigned bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     llmk::shared_address(to)),
                 "l"(from), "r"(bytes), "r"(llmk::shared_address(barrier))
                 : "memory");
}

struct Slot {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void next(int stages) {
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

__device__ __forceinline__ bool is_skipped(const Phase& phase, bool logits) {
    return phase.kind == kLinear && phase.output == kLogits && !logits;
}

template <typename T>
__device__ void produce(const Model<T>& model, const Shared& shared, int first, int last, bool logits) {
    Slot slot;
    for (int number = first; number < last; ++number) {
        const Phase& phase = model.phases[number];
        if (phase.kind != kLinear || is_skipped(phase, logits)) continue;
        const Share rows = share_of(phase);
        const int step = shared.rows_in_stage(phase);
        for (int row = rows.first; row < rows.end; row += step) {
            const unsigned bytes = static_cast<unsigned>(min(step, rows.end - row) * phase.columns * sizeof(T));
            llmk::wait(&shared.empty[slot.stage], slot.parity ^ 1);
            llmk::arrive_and_expect(&shared.full[slot.stage], bytes);
            copy_bulk(shared.stage(slot.stage), model.weights + phase.weights + row * phase.columns, bytes,
                      &shared.full[slot.stage]);
            slot.next(shared.stages);
        }
    }
}

// ---- the workers: from what others published to the input of a product ----

// The sum over all workers; calls take turns with two places, so that no second barrier is needed.
__device__ __forceinline__ float sum_of_workers(float mine, int place) {
    __shared__ float partial[2][kWorkers];
    mine = llmk::warp_sum(mine);
    if (threadIdx.x % 32 == 0) partial[place][threadIdx.x / 32] = mine;
    workers_meet();
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWorkers; ++warp) sum += partial[place][warp];
    return sum;
}

template <typename T>
__device__ void normalise(const Model<T>& model, const Phase& phase, unsigned epoch, unsigned* input) {
    const int words = model.width / 2, thread = threadIdx.x;
    const int count = thread < words ? (words - thread + kWorkerThreads - 1) / kWorkerThreads : 0;  // of this thread
    float2 weight[kMostWords], bias[kMostWords], x[kMostWords];
#pragma unroll
    for (int i = 0; i < kMostWords; ++i) {  // asked for before x is there
        const int column = (thread + i * kWorkerThreads) * 2;
        weight[i] = bias[i] = x[i] = make_float2(0, 0);
        if (i >= count) continue;
        weight[i] = *reinterpret_cast<const float2*>(model.parameters + phase.norm + column);
        if (phase.norm_bias >= 0) {
            bias[i] = *reinterpret_cast<const float2*>(model.parameters + phase.norm_bias + column);
        }
    }
    unsigned bits[kMostWords];
    await_words(bits, model.x_words + thread, kWorkerThreads, count, epoch);
    float sum = 0, squares = 0, mean = 0;
#pragma unroll
    for (int i = 0; i < kMostWords; ++i) {
        if (i < count) x[i] = unpack_two<T>(bits[i]);
        sum += x[i].x + x[i].y;
        squares += x[i].x * x[i].x + x[i].y * x[i].y;
    }
    if (phase.input == kLayerNormOfX) {
        mean = sum_of_workers(sum, 0) / model.width;
        squares = 0;
#pragma unroll
        for (int i = 0; i < kMostWords; ++i) {
            if (i < count) squares += (x[i].x - mean) * (x[i].x - mean) + (x[i].y - mean) * (x[i].y - mean);
        }
    }
    const float scale = rsqrtf(sum_of_workers(squares, 1) / model.width + model.epsilon);
#pragma unroll
    for (int i = 0; i < kMostWords; ++i) {
        if (i < count) {
            input[thread + i * kWorkerThreads] = pack<T>((x[i].x - mean) * scale * weight[i].x + bias[i].x,
                                                         (x[i].y - mean) * scale * weight[i].y + bias[i].y);
        }
    }
}

// Into how many parts the keys are split, each of which has some.
__device__ __forceinline__ int parts_of(int keys, int splits) {
    const int each = llmk::keys_per_part(keys, splits);
    return (keys + each - 1) / each;
}

// Puts what the parts of the keys give together.
template <typename T>
__device__ void combine_parts(const Model<T>& model, int columns, int keys, unsigned epoch, T* input) {
    const int parts = parts_of(keys, model.splits), stride = model.head_dim + 1;
    for (int i = threadIdx.x; i < columns; i += kWorkerThreads) {
        const int head = i / model.head_dim, d = i % model.head_dim;
        const Word* of_head = model.part_words + static_cast<long long>(head) * model.splits * stride;
        float largest = -INFINITY, sum = 0, weighted = 0;
        for (int part = 0; part < parts; ++part) {
            unsigned data[2];  // a number, and log2 of the part's sum
            await_words(data, of_head + part * stride + d, model.head_dim - d, 2, epoch);
            const float size = __uint_as_float(data[1]), now = fmaxf(largest, size);
            const float old_share = exp2f(largest - now), share = exp2f(size - now);
            sum = sum * old_share + share;
            weighted = weighted * old_share + share * __uint_as_float(data[0]);
            largest = now;
        }
        input[i] = static_cast<T>(weighted / sum);
    }
}

template <typename T>
__device__ void take_input(const Model<T>& model, const Phase& phase, int keys, unsigned epoch, void* input) {
    const int columns = static_cast<int>(phase.columns);
    if (phase.input == kAttended) {
        combine_parts(model, columns, keys, epoch, static_cast<T*>(input));
    } else if (phase.input == kHidden) {
        for (int word = threadIdx.x; word < columns / 2; word += kWorkerThreads * kMostWords) {
            const int count = min(kMostWords, (columns / 2 - word + kWorkerThreads - 1) / kWorkerThreads);
            unsigned bits[kMostWords];
            await_words(bits, model.hidden_words + word, kWorkerThreads, count, epoch);
#pragma unroll
            for (int i = 0; i < kMostWords; ++i) {
                if (i < count) static_cast<unsigned*>(input)[word + i * kWorkerThreads] = bits[i];
            }
        }
    } else {
        normalise(model, phase, epoch, static_cast<unsigned*>(input));
    }
    workers_meet();
}

// ---- the workers: products ----

// The block's rows times the input. A row belongs to `warps` neighbouring warps, each of which has a part of its columns:
// the lanes keep what they need of the input in registers, and go through the rows as they arrive.
template <typename T>
__device__ void multiply(const Phase& phase, const Share& rows, const Shared& shared, Slot& slot) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warps = static_cast<int>(phase.warps), teams = kWorkers / warps;
    const int team = warp / warps, part = warp % warps;
    const int vectors = static_cast<int>(phase.columns / 8);  // of 8 columns, 16 bytes
    const int begin = vectors * part / warps, end = vectors * (part + 1) / warps;

    float input[kMostVectors][8];
#pragma unroll
    for (int v = 0; v < kMostVectors; ++v) {
        const int vector = begin + v * 32 + lane;
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (vector < end) bits = static_cast<const uint4*>(shared.input)[vector];
        llmk::unpack<T>(bits, input[v]);
    }

    const int step = shared.rows_in_stage(phase);
    int mine = team;  // the next row of this team, counted from the block's first
    for (int first = 0; first < rows.end - rows.first; first += step) {
        const int stop = min(first + step, rows.end - rows.first);
        llmk::wait(&shared.full[slot.stage], slot.parity);
        const uint4* stage = reinterpret_cast<const uint4*>(shared.stage(slot.stage));
        for (; mine < stop; mine += teams) {
            const uint4* row = stage + (mine - first) * vectors;
            float even = 0, odd = 0;
#pragma unroll
            for (int v = 0; v < kMostVectors; ++v) {
                const int vector = begin + v * 32 + lane;
                if (vector < end) {
                    float weight[8];
                    llmk::unpack<T>(row[vector], weight);
#pragma unroll
                    for (int j = 0; j < 8; j += 2) {
                        even += weight[j] * input[v][j];
                        odd += weight[j + 1] * input[v][j + 1];
                    }
                }
            }
            const float sum = llmk::warp_sum(even + odd);
            if (lane == 0) shared.sums[mine * warps + part] = sum;
        }
        __syncwarp();
        if (lane == 0) llmk::arrive(&shared.empty[slot.stage]);
        slot.next(shared.stages);
    }
    workers_meet();
}

// ---- the workers: from the sums of a product to what others read ----

// Where the row of a position lies in the cache of keys or values.
template <typename T>
__device__ __forceinline__ long long cache_row(const Model<T>& model, long long layer, int kv_head, int position) {
    const int page = model.table[position / model.page_size];
    return (((layer * model.pages + page) * model.kv_heads + kv_head) * model.page_size + position % model.page_size) *
           model.head_dim;
}

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
__device__ __forceinline__ float silu(float x) { return x / (1.0f + __expf(-x)); }

// A number whose order among unsigned ones is that of the floats; among equal ones the lowest row is the largest.
__device__ __forceinline__ Word rank_of(float logit, int row) {
    const unsigned bits = __float_as_uint(logit);
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return static_cast<Word>(ordered) << 32 | (UINT_MAX - static_cast<unsigned>(row));
}

// Two rows of queries, keys or values: rows 2 p and 2 p + 1 of a head are the columns p and p + rotary / 2, which a
// rotation turns together, or columns behind those that are turned.
template <typename T>
__device__ void give_query_key_value(const Model<T>& model, const Phase& phase, const float2* angle, int row,
                                     float2 two, int position, unsigned epoch) {
    const int head = row / model.head_dim, pair = row % model.head_dim / 2, half = model.rotary / 2;
    const bool turned = pair < half;
    const int first = turned ? pair : 2 * pair, second = turned ? pair + half : 2 * pair + 1;
    if (turned && head < model.heads + model.kv_heads) {
        const float2 a = angle[pair];
        two = make_float2(two.x * a.x - two.y * a.y, two.y * a.x + two.x * a.y);
    }
    if (head >= model.heads) {
        const int other = head - model.heads;
        T* to = (other < model.kv_heads ? model.keys : model.values) +
                cache_row(model, phase.layer, other % model.kv_heads, position);
        to[first] = static_cast<T>(two.x);  // for the tokens to come
        to[second] = static_cast<T>(two.y);
        two = make_float2(static_cast<float>(to[first]), static_cast<float>(to[second]));
    }
    Word* words = model.qkv_words + static_cast<long long>(head) * model.head_dim;
    publish(words + first, two.x, epoch);
    publish(words + second, two.y, epoch);
}

// The rows of one thread: `together` neighbours.
template <typename T>
__device__ void give_output(const Model<T>& model, const Phase& phase, const Share& rows, const Shared& shared,
                            float2 known, int position, unsigned epoch) {
    const int warps = static_cast<int>(phase.warps), together = static_cast<int>(phase.together);
    auto value = [&](int row) {
        float sum = 0;
        for (int warp = 0; warp < warps; ++warp) sum += shared.sums[(row - rows.first) * warps + warp];
        return sum;
    };
    if (phase.output == kLogits) {
        Word best = 0;
        for (int row = rows.first + threadIdx.x; row < rows.end; row += kWorkerThreads) {
            const float logit = value(row);
            model.logits[row] = logit;
            best = max(best, rank_of(logit, row));
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            best = max(best, __shfl_xor_sync(llmk::kAllLanes, best, distance));
        }
        if (threadIdx.x % 32 == 0 && best > 0) atomicMax(model.best, best);
        return;
    }
    for (int row = rows.first + threadIdx.x * together; row < rows.end; row += kWorkerThreads * together) {
        const float2 two = make_float2(value(row), value(row + 1));
        if (phase.output == kGateUp) {
            publish(model.hidden_words + row / 4, pack<T>(silu(two.x) * two.y, silu(value(row + 2)) * value(row + 3)),
                    epoch);
        } else if (phase.output == kGelu) {
            publish(model.hidden_words + row / 2, pack<T>(gelu(two.x + known.x), gelu(two.y + known.y)), epoch);
        } else if (phase.output == kAddToX) {
            const float2 x = make_float2(two.x + known.x, two.y + known.y);
            *reinterpret_cast<float2*>(model.x + row) = x;
            if (phase.publishes) publish(model.x_words + row / 2, pack<T>(x.x, x.y), epoch);
        } else {
            give_query_key_value(model, phase, shared.angle, row, make_float2(two.x + known.x, two.y + known.y),
                                 position, epoch);
        }
    }
}

// What a thread adds to its two rows: the bias, and what x has. It is fetched before the phase has to wait.
template <typename T>
__device__ float2 fetch_known(const Model<T>& model, const Phase& phase, const Share& rows) {
    const int row = rows.first + threadIdx.x * 2;
    float2 known = make_float2(0, 0);
    if (phase.together != 2 || row >= rows.end) return known;
    if (phase.bias >= 0) known = *reinterpret_cast<const float2*>(model.parameters + phase.bias + row);
    if (phase.output == kAddToX) {
        const float2 x = *reinterpret_cast<const float2*>(model.x + row);
        known = make_float2(known.x + x.x, known.y + x.y);
    }
    return known;
}

// x is the row of the token in the table. Each thread has the numbers that it will add to later.
template <typename T>
__device__ void embed(const Model<T>& model, const Phase& phase, int position, unsigned epoch) {
    const Share rows = share_of(phase);
    const int row = rows.first + threadIdx.x * 2;
    if (row >= rows.end) return;
    const T* from = model.weights + phase.weights + static_cast<long long>(model.tokens[position]) * model.width + row;
    const float2 x = make_float2(static_cast<float>(from[0]), static_cast<float>(from[1]));
    *reinterpret_cast<float2*>(model.x + row) = x;
    publish(model.x_words + row / 2, pack<T>(x.x, x.y), epoch);
}

// ---- the workers: attention ----

// Eight columns of the key or the value of a position: those of earlier tokens are in the cache, those of this token come
// in words, as some other block may just have made them.
template <typename T>
__device__ __forceinline__ void fetch_row(const Model<T>& model, const T* cache, const Word* now, long long layer,
                                          int kv_head, int key, int keys, int column, unsigned epoch,
                                          float (&numbers)[8]) {
    if (key + 1 < keys) {
        const T* row = cache + cache_row(model, layer, kv_head, key) + column;
        llmk::unpack<T>(*reinterpret_cast<const uint4*>(row), numbers);
    } else {
        unsigned data[8];
        await_words(data, now + static_cast<long long>(kv_head) * model.head_dim + column, 1, 8, epoch);
#pragma unroll
        for (int j = 0; j < 8; ++j) numbers[j] = __uint_as_float(data[j]);
    }
}

// Online softmax of one more group: (largest, total, sum) and those of the lane at this distance.
__device__ __forceinline__ void merge_lanes(float& largest, float& total, float (&sum)[8], int distance) {
    const float other = __shfl_xor_sync(llmk::kAllLanes, largest, distance);
    const float now = fmaxf(largest, other);
    const float mine = largest == -INFINITY ? 0.0f : exp2f(largest - now);
    const float theirs = other == -INFINITY ? 0.0f : exp2f(other - now);
    total = total * mine + __shfl_xor_sync(llmk::kAllLanes, total, distance) * theirs;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        sum[j] = sum[j] * mine + __shfl_xor_sync(llmk::kAllLanes, sum[j], distance) * theirs;
    }
    largest = now;
}

// One part of the keys for one query head: LANES lanes hold a row, 8 columns each. sums: [kWorkers, head_dim], shared.
template <typename T, int LANES>
__device__ void attend(const Model<T>& model, const Phase& phase, int head, int part, int keys, unsigned read,
                       unsigned epoch, float* sums) {
    __shared__ float largests[kWorkers], totals[kWorkers];
    constexpr int kRows = 32 / LANES;  // keys of a warp at a time
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int column = lane % LANES * 8;
    const bool used = column < model.head_dim;
    const int kv_head = head / (model.heads / model.kv_heads);
    const int each = llmk::keys_per_part(keys, model.splits);
    const int first = part * each, end = min(first + each, keys);
    const Word* key_now = model.qkv_words + static_cast<long long>(model.heads) * model.head_dim;
    const Word* value_now = key_now + static_cast<long long>(model.kv_heads) * model.head_dim;

    float query[8] = {}, sum[8] = {}, largest = -INFINITY, total = 0;
    if (used) {
        unsigned data[8];
        await_words(data, model.qkv_words + static_cast<long long>(head) * model.head_dim + column, 1, 8, read);
#pragma unroll
        for (int j = 0; j < 8; ++j) query[j] = __uint_as_float(data[j]) * model.scale * kLog2OfE;
    }
    for (int base = first + warp * kRows; base < end; base += kWorkers * kRows) {
        const int key = base + lane / LANES;
        float k[8] = {}, v[8] = {}, score = 0;
        if (key < end && used) {
            fetch_row(model, model.keys, key_now, phase.layer, kv_head, key, keys, column, read, k);
            fetch_row(model, model.values, value_now, phase.layer, kv_head, key, keys, column, read, v);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) score += query[j] * k[j];
        score = llmk::warp_sum<LANES>(score);
        if (key < end) {
            const float now = fmaxf(largest, score), old_share = exp2f(largest - now), share = exp2f(score - now);
            total = total * old_share + share;
#pragma unroll
            for (int j = 0; j < 8; ++j) sum[j] = sum[j] * old_share + share * v[j];
            largest = now;
        }
    }
#pragma unroll
    for (int distance = LANES; distance < 32; distance *= 2) merge_lanes(largest, total, sum, distance);

    if (lane < LANES && used) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[warp * model.head_dim + column + j] = sum[j];
    }
    if (lane == 0) {
        largests[warp] = largest;
        totals[warp] = total;
    }
    workers_meet();
    if (threadIdx.x < model.head_dim) {
        float m = -INFINITY, l = 0, weighted = 0;
#pragma unroll
        for (int w = 0; w < kWorkers; ++w) m = fmaxf(m, largests[w]);
#pragma unroll
        for (int w = 0; w < kWorkers; ++w) {
            const float share = exp2f(largests[w] - m);  // 0 for a warp that had no key
            l += share * totals[w];
            weighted += share * (share > 0 ? sums[w * model.head_dim + threadIdx.x] : 0.0f);
        }
        Word* to = model.part_words + (static_cast<long long>(head) * model.splits + part) * (model.head_dim + 1);
        publish(to + threadIdx.x, weighted / l, epoch);
        if (threadIdx.x == 0) publish(to + model.head_dim, m + log2f(l), epoch);
    }
    workers_meet();  // before the sums are written again
}

template <typename T>
__device__ void attention(const Model<T>& model, const Phase& phase, int keys, unsigned read, unsigned epoch,
                          float* sums) {
    const int parts = parts_of(keys, model.splits);
    for (int task = blockIdx.x; task < model.heads * parts; task += gridDim.x) {
        const int head = task / parts, part = task % parts;
        if (model.head_dim <= 64) {
            attend<T, 8>(model, phase, head, part, keys, read, epoch, sums);
        } else if (model.head_dim <= 128) {
            attend<T, 16>(model, phase, head, part, keys, read, epoch, sums);
        } else {
            attend<T, 32>(model, phase, head, part, keys, read, epoch, sums);
        }
    }
}

// ---- the kernel ----

// The last block to come here makes the next token an input, and everything ready for the next launch.
template <typename T>
__device__ void advance(const Model<T>& model, int position, int launches) {
    workers_meet();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(model.arrivals, 1u) != gridDim.x - 1) return;
    __threadfence();
    const Word best = atomicExch(model.best, 0ull);
    if (best > 0) {  // else no logits were computed: the next token is one of the prompt's
        model.tokens[position + 1] = static_cast<int>(UINT_MAX - static_cast<unsigned>(best));
    }
    model.state[0] = position + 1;
    model.state[1] = launches + 1;
    atomicExch(model.arrivals, 0u);
}

// Phases first ... last - 1 of the list, the logits only where they are wanted. A token can also be made by several
// launches, each with some of the phases; the weights of one are fetched before the launch before it has ended.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1) decode_kernel(const Model<T> model, int first, int last, bool logits,
                                                             int stages, int stage_bytes, int input_bytes) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t barriers[2 * kMostStages];
    __shared__ float2 angle[kMostHead / 2];
    Shared shared;
    shared.ring = memory;
    shared.full = barriers;
    shared.empty = barriers + kMostStages;
    shared.input = memory + static_cast<long long>(stages) * stage_bytes;
    shared.sums = reinterpret_cast<float*>(static_cast<unsigned char*>(shared.input) + input_bytes);
    shared.angle = angle;
    shared.stages = stages;
    shared.stage_bytes = stage_bytes;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; ++stage) {
            llmk::make_barrier(&shared.full[stage], 1);
            llmk::make_barrier(&shared.empty[stage], kWorkers);
        }
        llmk::fence_barriers();
    }
    __syncthreads();
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    if (threadIdx.x >= kWorkerThreads) {
        if (threadIdx.x == kWorkerThreads) produce(model, shared, first, last, logits);
        return;
    }

    asm volatile("griddepcontrol.wait;" ::: "memory");
    const int position = model.state[0], launches = model.state[1];
    for (int i = threadIdx.x; i < model.rotary / 2; i += kWorkerThreads) {
        angle[i] =
            reinterpret_cast<const float2*>(model.rope)[static_cast<long long>(position) * (model.rotary / 2) + i];
    }
    workers_meet();
    const unsigned epochs = static_cast<unsigned>(launches) * model.phase_count + 1;  // of phase 0; never 0
    Slot slot;
    for (int number = first; number < last; ++number) {
        const Phase phase = model.phases[number];
        const unsigned read = epochs + static_cast<unsigned>(phase.source), epoch = epochs + number;
        if (is_skipped(phase, logits)) continue;
        if (phase.kind == kEmbed) {
            embed(model, phase, position, epoch);
        } else if (phase.kind == kAttention) {
            attention(model, phase, position + 1, read, epoch, static_cast<float*>(shared.input));
        } else if (phase.kind == kAdvance) {
            advance(model, position, launches);
        } else {
            const Share rows = share_of(phase);
            if (rows.first == rows.end) continue;  // who gives nothing must not read: nobody would wait for it
            const float2 known = fetch_known(model, phase, rows);
            take_input(model, phase, position + 1, read, shared.input);
            multiply<T>(phase, rows, shared, slot);
            give_output(model, phase, rows, shared, known, position, epoch);
        }
    }
}

// Phases first ... last - 1 as one launch. `alone`: its blocks wait for each other, so all must run at once. Else it may
// begin before the launch before it has ended.
template <typename T>
void launch(const Model<T>& model, int first, int last, bool logits, int stages, int stage_bytes, int input_bytes,
            int sums_bytes, bool alone, cudaStream_t stream) {
    int device = 0, processors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    const size_t bytes = static_cast<size_t>(stages) * stage_bytes + input_bytes + sums_bytes;
    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(decode_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(bytes));
    }
    if (error != cudaSuccess) return;  // the caller asks for the last error

    cudaLaunchAttribute attributes[1] = {};
    if (alone) {
        attributes[0].id = cudaLaunchAttributeCooperative;
        attributes[0].val.cooperative = 1;
    } else {
        attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[0].val.programmaticStreamSerializationAllowed = 1;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(processors);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, decode_kernel<T>, model, first, last, logits, stages, stage_bytes, input_bytes);
}

}  // namespace

extern "C" void decode_f16(const __half* weights, const float* parameters, const float* rope, const long long* phases,
                           __half* keys, __half* values, const int* table, int* tokens, int* state, float* x,
                           long long* x_words, long long* qkv_words, long long* part_words, long long* hidden_words,
                           float* logits, int* arrivals, long long* best, int phase_count, int width, int heads,
                           int kv_heads, int head_dim, int rotary, int page_size, int pages, int splits, float epsilon,
                           float scale, int first, int last, bool want_logits, int stages, int stage_bytes,
                           int input_bytes, int sums_bytes, bool alone, cudaStream_t stream) {
    const Model<__half> model = {weights,
                                 parameters,
                                 rope,
                                 reinterpret_cast<const Phase*>(phases),
                                 keys,
                                 values,
                                 table,
                                 tokens,
                                 state,
                                 x,
                                 reinterpret_cast<Word*>(x_words),
                                 reinterpret_cast<Word*>(qkv_words),
                                 reinterpret_cast<Word*>(part_words),
                                 reinterpret_cast<Word*>(hidden_words),
                                 logits,
                                 reinterpret_cast<unsigned*>(arrivals),
                                 reinterpret_cast<Word*>(best),
                                 phase_count,
                                 width,
                                 heads,
                                 kv_heads,
                                 head_dim,
                                 rotary,
                                 page_size,
                                 pages,
                                 splits,
                                 epsilon,
                                 scale};
    launch(model, first, last, want_logits, stages, stage_bytes, input_bytes, sums_bytes, alone, stream);
}

extern "C" void decode_bf16(const __nv_bfloat16* weights, const float* parameters, const float* rope,
                            const long long* phases, __nv_bfloat16* keys, __nv_bfloat16* values, const int* table,
                            int* tokens, int* state, float* x, long long* x_words, long long* qkv_words,
                            long long* part_words, long long* hidden_words, float* logits, int* arrivals,
                            long long* best, int phase_count, int width, int heads, int kv_heads, int head_dim,
                            int rotary, int page_size, int pages, int splits, float epsilon, float scale, int first,
                            int last, bool want_logits, int stages, int stage_bytes, int input_bytes, int sums_bytes,
                            bool alone, cudaStream_t stream) {
    const Model<__nv_bfloat16> model = {weights,
                                        parameters,
                                        rope,
                                        reinterpret_cast<const Phase*>(phases),
                                        keys,
                                        values,
                                        table,
                                        tokens,
                                        state,
                                        x,
                                        reinterpret_cast<Word*>(x_words),
                                        reinterpret_cast<Word*>(qkv_words),
                                        reinterpret_cast<Word*>(part_words),
                                        reinterpret_cast<Word*>(hidden_words),
                                        logits,
                                        reinterpret_cast<unsigned*>(arrivals),
                                        reinterpret_cast<Word*>(best),
                                        phase_count,
                                        width,
                                        heads,
                                        kv_heads,
                                        head_dim,
                                        rotary,
                                        page_size,
                                        pages,
                                        splits,
                                        epsilon,
                                        scale};
    launch(model, first, last, want_logits, stages, stage_bytes, input_bytes, sums_bytes, alone, stream);
}
