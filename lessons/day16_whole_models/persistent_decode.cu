// A whole model in one kernel: one launch reads the last token and writes the next one.
//
// When one sequence decodes, the least time of a token is that of reading the weights from memory. A kernel per
// operator spends more time on starting, filling the memory pipeline and draining it than on its weights. Here one
// block stays on each SM, and all blocks run through a list of phases. Weights depend on nothing: one thread of the
// block loads the block's rows of all phases, in order, to a ring in shared memory. It runs as far ahead as the ring
// allows, even while the other threads wait.
//
// Most of a phase is not the multiplication but instructions before and after it, which wait for each other. So each
// part has warps of its own. *Readers* wait for the inputs of a phase, normalize them, and proceed to the next phase
// (or to attention) while the *multipliers* compute this one. *Writers* rotate, add and publish the sums of the
// previous phase. They synchronize with mbarriers, with two buffers for inputs and two for sums.
//
// The ring is as large as shared memory allows, so that the memory is busy while the multipliers wait. But only a part
// of it may be in flight at a time: requests beyond the memory's bandwidth only queue up, and delay every word that is
// read.
//
// The blocks never synchronize at a barrier. Data that other blocks need travels in words of 64 bits: 32 bits of data
// and the number of the phase that wrote them (its *epoch*). A word is written and read atomically, so a thread that
// reads the expected epoch has the data too: one trip through the L2 cache, where a barrier takes four (fence, count,
// poll, read). NCCL calls this its LL ("low latency") protocol. A word may be overwritten once all its readers have
// written something that its writer has waited for, directly or indirectly; the order of the phases guarantees that.
//
// The list of phases is data, which persistent_decode.py creates from a model: this file knows operators, not models.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <climits>
#include <cstdint>

#include "llmk/decode.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"

namespace {

// The warps of a block: multipliers, then readers, then writers, and a last one that loads weights.
constexpr int kWarps = 8;
constexpr int kReaders = 5 * 32, kWriters = 2 * 32;  // threads
constexpr int kThreads = kWarps * 32 + kReaders + kWriters + 32;
constexpr int kMostSlots = 16;   // stages of the ring
constexpr int kMostVectors = 5;  // 8-column vectors of a linear layer's input per lane
constexpr int kMostPairs = 4;    // pairs of words that one reader normalizes
constexpr int kMostRead = 4;     // pairs of words that one reader reads at a time from inputs without a norm
constexpr int kMostHead = 256;
constexpr int kSmallestPart = 128;  // keys: a part with fewer is not worth a block
constexpr int kReadersBarrier = 1, kWritersBarrier = 2;
constexpr float kLog2OfE = 1.44269504f;

enum Kind { kEmbed, kLinear, kAttention, kAdvance };
enum Input { kRmsNormOfX, kLayerNormOfX, kAttended, kHidden };
enum Output { kQueryKeyValue, kAddToX, kGelu, kGateUp, kLogits };

using Word = unsigned long long;

// One phase in the list of phases: 15 numbers. persistent_decode.py has the same names in the same order. Offsets are
// in elements.
struct Phase {
    long long kind;
    long long weights;          // linear: offset of the matrix [rows, columns]; embed: of the table [vocabulary, width]
    long long rows, columns;    // of the matrix; embed: rows is the width
    long long row_group;        // neighboring rows per writer thread: 4 for a gate and its up, 1 for logits, else 2
    long long input, output;    // linear: kinds of input and output
    long long norm, norm_bias;  // offsets in parameters, or -1
    long long bias;             // offset in parameters, or -1
    long long layer;            // index of the layer, for its keys and values
    long long splits;           // parts of a row, one warp each: 1, 2, 4 or 8
    long long shift;      // rotates the blocks, so that others get one more row; equal for all phases that add to x
    long long source;     // the phase that publishes this one's input
    long long publishes;  // in a phase that adds to x: 1 if x is complete after the phase, otherwise 0
};

// Data of all phases. T is __half or __nv_bfloat16.
template <typename T>
struct Model {
    const T* weights;         // all matrices
    const float* parameters;  // weights and biases of norms, biases of linear layers
    const float* rope;        // [positions, rotary / 2, 2]: cosine and sine
    const Phase* phases;
    T* keys;             // [layers, pages, kv_heads, page_size, head_dim]
    T* values;           // the same
    const int* table;    // [most pages of a sequence]: the page of rows page_size * i ...
    int* tokens;         // [most tokens]: the prompt, then the generated tokens
    int* state;          // [2]: position of the token, which is the number of cached keys; number of earlier launches
    float* x;            // [width]: the residual stream; one thread reads and writes each element
    Word* x_words;       // [width / 2]: x rounded to T, for all blocks
    Word* qkv_words;     // [heads + 2 kv_heads, head_dim]: floats
    Word* part_words;    // [heads, splits, head_dim + 2]: floats: the result of a part of the keys, log2 of its sum
    Word* hidden_words;  // [intermediate / 2]: pairs of T
    float* logits;       // [vocabulary]
    unsigned* arrivals;  // [1]: blocks that have finished; zero between launches
    Word* best;          // [1]: the largest logit and its row; zero between launches
    int phase_count;     // phases of a whole token
    int width;           // hidden size
    int heads, kv_heads, head_dim, rotary, page_size, pages, splits;
    float epsilon, scale;
};

// The work of one block in a phase. A *tile* is one part of one row: tile i is part i % splits of row i / splits. Warps
// take tiles in turn: kWarps neighboring tiles, which are contiguous in the matrix, are one stage of the ring.
struct Work {
    long long weights;        // offset of its first row in all weights
    int first, rows;          // linear, embed: rows of the matrix
    int vectors;              // vectors per row: 8 columns, 16 bytes each
    int shift, tiles;         // 1 << shift parts per row
    int kind, input, output;  // copied from the phase:
    int row_group, norm, norm_bias, bias, source, layer, publishes;

    // Offset of a part of a row, in vectors.
    __device__ __forceinline__ int part(int number) const { return vectors * number >> shift; }
};

// The shared memory of a block. Phases alternate between two buffers for inputs and two for sums.
struct Shared {
    unsigned char* ring;     // [slots, slot_bytes]
    uint64_t *full, *empty;  // [kMostSlots]: mbarriers of the stages of the ring
    unsigned char* inputs;   // [2, input_bytes]: [most columns] of T
    unsigned char* sums;     // [2, sums_bytes]: floats [most tiles of a block]
    float* attended;         // [kReaders / 32, head_dim]
    uint64_t* ready;         // [2], one mbarrier for each buffer: its input is complete
    uint64_t* summed;        // [2], likewise: its input has been read by all multipliers, and its sums are complete
    uint64_t* given;         // [2], likewise: the writers have loaded its sums, so it may be overwritten
    const Work* works;       // [last - first]
    const float2* angle;     // [rotary / 2]: cosine and sine of this position
    int slots, slot_bytes, flying, input_bytes, sums_bytes;

    __device__ __forceinline__ void* input(int place) const { return inputs + place * input_bytes; }
    __device__ __forceinline__ float* sums_of(int place) const {
        return reinterpret_cast<float*>(sums + place * sums_bytes);
    }
};

// The current stage or buffer, and the parity of its mbarrier's phase.
struct Turn {
    int place = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void next(int places) {
        if (++place == places) {
            place = 0;
            parity ^= 1;
        }
    }
};

// Compute the block's work in each phase, one thread per phase.
__device__ void plan(const Phase* phases, int first, int last, bool logits, Work* works) {
    for (int i = threadIdx.x; i < last - first; i += kThreads) {
        const Phase phase = phases[first + i];
        Work work;
        const unsigned block = (blockIdx.x + static_cast<unsigned>(phase.shift)) % gridDim.x;
        const unsigned row_group = static_cast<unsigned>(phase.row_group);
        const unsigned units = static_cast<unsigned>(phase.rows) / row_group;
        // Distribute evenly, without products that overflow: the first units % gridDim.x blocks get one unit more.
        const unsigned each = units / gridDim.x, more = units % gridDim.x;
        work.first = static_cast<int>((each * block + min(block, more)) * row_group);
        work.rows = static_cast<int>((each + (block < more)) * row_group);
        work.weights = phase.weights + work.first * phase.columns;
        work.vectors = static_cast<int>(phase.columns / 8);
        work.shift = __ffs(static_cast<int>(phase.splits)) - 1;
        work.kind = static_cast<int>(phase.kind);
        work.input = static_cast<int>(phase.input);
        work.output = static_cast<int>(phase.output);
        work.row_group = static_cast<int>(row_group);
        work.norm = static_cast<int>(phase.norm);
        work.norm_bias = static_cast<int>(phase.norm_bias);
        work.bias = static_cast<int>(phase.bias);
        work.source = static_cast<int>(phase.source);
        work.layer = static_cast<int>(phase.layer);
        work.publishes = static_cast<int>(phase.publishes);
        if (work.kind == kLinear && work.output == kLogits && !logits) work.rows = 0;
        work.tiles = work.kind == kLinear ? work.rows << work.shift : 0;
        works[i] = work;
    }
    __syncthreads();
}

// ---- words ----

__device__ __forceinline__ void publish(Word* to, unsigned data, unsigned epoch) {
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(static_cast<Word>(epoch) << 32 | data)
                 : "memory");
}
__device__ __forceinline__ void publish(Word* to, float value, unsigned epoch) {
    publish(to, __float_as_uint(value), epoch);
}

// Load two neighboring words, each atomically.
__device__ __forceinline__ void look(const Word* at, Word (&words)[2]) {
    asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(words[0]), "=l"(words[1]) : "l"(at) : "memory");
}

// Wait until both words of all `count` pairs (pair i is at `at(i)`, count <= COUNT) have this epoch; return their data.
// All loads are issued before the first is checked, so they take one trip to the L2 cache and not COUNT.
template <int COUNT, typename At>
__device__ __forceinline__ void await_pairs(uint2 (&data)[COUNT], At at, int count, unsigned epoch) {
    unsigned missing = (1u << count) - 1;
    while (missing != 0) {
        Word words[COUNT][2];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (missing >> i & 1) look(at(i), words[i]);
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (missing >> i & 1 && static_cast<unsigned>(words[i][0] >> 32) == epoch &&
                static_cast<unsigned>(words[i][1] >> 32) == epoch) {
                data[i] = make_uint2(static_cast<unsigned>(words[i][0]), static_cast<unsigned>(words[i][1]));
                missing &= ~(1u << i);
            }
        }
    }
}

// Prefetch a line to the L2 cache.
__device__ __forceinline__ void prefetch(const void* line) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line) : "memory");
}

// Pack two numbers of T into 32 bits.
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

// ---- loading weights ----

// Weights are used once: evict them from the L2 cache first, before words, parameters, keys and values.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, unsigned bytes, uint64_t* barrier) {
    asm volatile(
        "{ .reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
        "policy; }" ::"r"(llmk::shared_address(to)),
        "l"(from), "r"(bytes), "r"(llmk::shared_address(barrier))
        : "memory");
}

// Load all tiles with one thread, one copy per stage, as far ahead as the ring allows, with `flying` stages in flight.
template <typename T>
__device__ void ask_for_weights(const Shared& shared, const T* weights, int works) {
    Turn next, oldest;
    int flying = 0;
    for (int i = 0; i < works; ++i) {
        const Work work = shared.works[i];
        const T* from = weights + work.weights;
        for (int tile = 0; tile < work.tiles; tile += kWarps) {
            const int elements = (min(kWarps, work.tiles - tile) >> work.shift) * work.vectors * 8;
            const unsigned bytes = static_cast<unsigned>(elements * sizeof(T));
            if (flying < shared.flying) {
                ++flying;
            } else {
                llmk::mbarrier_wait_parity(shared.full + oldest.place, oldest.parity);
                oldest.next(shared.slots);
            }
            llmk::mbarrier_wait_parity(shared.empty + next.place, next.parity ^ 1);
            llmk::mbarrier_arrive_expect_tx(shared.full + next.place, bytes);
            copy_bulk(shared.ring + next.place * shared.slot_bytes, from, bytes, shared.full + next.place);
            from += elements;
            next.next(shared.slots);
        }
    }
}

// ---- from published words to the input of a matmul ----

// Return the sum over all readers. Calls alternate between two buffers, so no second barrier is needed.
__device__ __forceinline__ float sum_of_readers(float mine, int reader, int place) {
    __shared__ float partial[4][kReaders / 32];
    mine = llmk::warp_sum(mine);
    if (reader % 32 == 0) partial[place][reader / 32] = mine;
    llmk::bar_sync(kReadersBarrier, kReaders);
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kReaders / 32; ++warp) sum += partial[place][warp];
    return sum;
}

template <typename T>
__device__ void normalize(const Model<T>& model, const Work& work, int reader, int place, unsigned epoch,
                          uint2* input) {
    const int pairs = model.width / 4,
              count = max(0, (pairs - reader + kReaders - 1) / kReaders);  // count: pairs of this reader
    float4 weight[kMostPairs], bias[kMostPairs], x[kMostPairs];
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {  // loaded before x is complete
        const int column = (reader + i * kReaders) * 4;
        weight[i] = bias[i] = x[i] = make_float4(0, 0, 0, 0);
        if (i >= count) continue;
        weight[i] = *reinterpret_cast<const float4*>(model.parameters + work.norm + column);
        if (work.norm_bias >= 0) bias[i] = *reinterpret_cast<const float4*>(model.parameters + work.norm_bias + column);
    }
    uint2 bits[kMostPairs];
    await_pairs(bits, [&](int i) { return model.x_words + (reader + i * kReaders) * 2; }, count, epoch);
    float sum = 0, squares = 0, mean = 0;
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        if (i < count) {
            const float2 a = unpack_two<T>(bits[i].x), b = unpack_two<T>(bits[i].y);
            x[i] = make_float4(a.x, a.y, b.x, b.y);
        }
        sum += (x[i].x + x[i].y) + (x[i].z + x[i].w);
    }
    if (work.input == kLayerNormOfX) mean = sum_of_readers(sum, reader, 2 * place) / model.width;
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        if (i >= count) continue;
        x[i] = make_float4(x[i].x - mean, x[i].y - mean, x[i].z - mean, x[i].w - mean);
        squares += (x[i].x * x[i].x + x[i].y * x[i].y) + (x[i].z * x[i].z + x[i].w * x[i].w);
    }
    const float scale = rsqrtf(sum_of_readers(squares, reader, 2 * place + 1) / model.width + model.epsilon);
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        if (i >= count) continue;
        const float4 w = weight[i], b = bias[i];
        input[reader + i * kReaders] = make_uint2(pack<T>(x[i].x * scale * w.x + b.x, x[i].y * scale * w.y + b.y),
                                                  pack<T>(x[i].z * scale * w.z + b.z, x[i].w * scale * w.w + b.w));
    }
}

__device__ __forceinline__ int keys_per_part(int keys, int splits) {
    return max(kSmallestPart, (keys + splits - 1) / splits);
}

// Return the number of parts of the keys, all of them non-empty.
__device__ __forceinline__ int parts_of(int keys, int splits) {
    const int each = keys_per_part(keys, splits);
    return (keys + each - 1) / each;
}

// Read pairs of words, pair i at `at(i)`, distributed over the threads: use(i, data).
template <typename At, typename Use>
__device__ __forceinline__ void read_pairs(int pairs, int reader, At at, unsigned epoch, Use use) {
    for (int first = reader; first < pairs; first += kReaders * kMostRead) {
        const int count = min(kMostRead, (pairs - first + kReaders - 1) / kReaders);
        uint2 data[kMostRead];
        await_pairs(data, [&](int i) { return at(first + i * kReaders); }, count, epoch);
#pragma unroll
        for (int i = 0; i < kMostRead; ++i) {
            if (i < count) use(first + i * kReaders, data[i]);
        }
    }
}

// Combine the results of the parts of the keys.
template <typename T>
__device__ void combine_parts(const Model<T>& model, int columns, int keys, int reader, unsigned epoch,
                              unsigned* input) {
    const int parts = parts_of(keys, model.splits), dim = model.head_dim, stride = dim + 2;
    if (parts == 1) {  // the part's values are the result
        const auto at = [&](int i) { return model.part_words + i * 2 / dim * (model.splits * stride - dim) + i * 2; };
        read_pairs(columns / 2, reader, at, epoch,
                   [&](int i, uint2 two) { input[i] = pack<T>(__uint_as_float(two.x), __uint_as_float(two.y)); });
        return;
    }
    for (int i = reader; i < columns / 2; i += kReaders) {
        const int head = i * 2 / dim, d = i * 2 % dim;
        const Word* of_head = model.part_words + head * model.splits * stride;
        float largest = -INFINITY, sum = 0;
        float2 weighted = make_float2(0, 0);
        constexpr int kPartsPerStep = 2;  // a thread reads two numbers and the log2 of the sum of each part
        for (int part = 0; part < parts; part += kPartsPerStep) {
            const int count = min(kPartsPerStep, parts - part);
            uint2 data[2 * kPartsPerStep];
            const auto at = [&](int j) { return of_head + (part + j / 2) * stride + (j % 2 == 0 ? d : dim); };
            await_pairs(data, at, 2 * count, epoch);
#pragma unroll
            for (int j = 0; j < kPartsPerStep; ++j) {
                if (j >= count) continue;
                const float size = __uint_as_float(data[2 * j + 1].x), now = fmaxf(largest, size);
                const float old_share = exp2f(largest - now), share = exp2f(size - now);
                sum = sum * old_share + share;
                weighted.x = weighted.x * old_share + share * __uint_as_float(data[2 * j].x);
                weighted.y = weighted.y * old_share + share * __uint_as_float(data[2 * j].y);
                largest = now;
            }
        }
        input[i] = pack<T>(weighted.x / sum, weighted.y / sum);
    }
}

template <typename T>
__device__ void take_input(const Model<T>& model, const Work& work, int keys, int reader, int place, unsigned epoch,
                           void* input) {
    const int columns = work.vectors * 8;
    if (work.input == kAttended) {
        combine_parts(model, columns, keys, reader, epoch, static_cast<unsigned*>(input));
    } else if (work.input == kHidden) {
        const auto at = [&](int i) { return model.hidden_words + i * 2; };
        read_pairs(columns / 4, reader, at, epoch, [&](int i, uint2 four) { static_cast<uint2*>(input)[i] = four; });
    } else {
        normalize(model, work, reader, place, epoch, static_cast<uint2*>(input));
    }
    __syncwarp();
}

// ---- matmuls ----

// Multiply this warp's tiles by its part of the input, on tensor cores, two tiles at a time in one pass.
//
// An mma.sync multiplies 16 rows by 8 columns, but a pass has only two rows of weights and one column of input. The
// shares of the lanes fill the operands instead: a row of operand A is a lane's
// share of a tile (rows g and g + 8: lanes 4 g ... 4 g + 3 of the first and second tile), and a column of
// operand B is the same share of the input. Products of a lane's own elements are on the diagonals, and only those are
// used. That uses an eighth of the tensor cores' arithmetic, but still takes a quarter of the instructions of
// unpacking, multiplying and adding.
template <typename T, int VECTORS>
__device__ void multiply(const Work& work, const Shared& shared, Turn turn, Turn& ring) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp & ((1 << work.shift) - 1);
    const int begin = work.part(part), count = work.part(part + 1) - begin;
    const int mine = (warp >> work.shift) * work.vectors + begin;  // this warp's first vector in a stage
    uint4 input[VECTORS];
    llmk::mbarrier_wait_parity(shared.ready + turn.place, turn.parity);
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {  // lanes past the end of a part multiply by zeros
        input[v] = make_uint4(0, 0, 0, 0);
        if (v * 32 + lane < count)
            input[v] = static_cast<const uint4*>(shared.input(turn.place))[begin + v * 32 + lane];
    }
    llmk::mbarrier_wait_parity(shared.given + turn.place, turn.parity ^ 1);
    float* const sums_of_tiles = shared.sums_of(turn.place);
    for (int tile = warp; tile - warp < work.tiles; tile += 2 * kWarps) {
        Turn slots[2] = {ring, ring};
        const bool two_slots = tile - warp + kWarps < work.tiles, two = tile + kWarps < work.tiles;
        llmk::mbarrier_wait_parity(shared.full + ring.place, ring.parity);
        ring.next(shared.slots);
        if (two_slots) {
            slots[1] = ring;
            llmk::mbarrier_wait_parity(shared.full + ring.place, ring.parity);
            ring.next(shared.slots);
        }
        if (tile < work.tiles) {
            const auto tile_in = [&](int slot) {
                return reinterpret_cast<const uint4*>(shared.ring + slot * shared.slot_bytes) + mine;
            };
            const uint4 *first = tile_in(slots[0].place), *second = two ? tile_in(slots[1].place) : first;
            float sums[2][4] = {};  // two accumulators, so that one mma need not wait for the other
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                const int at = min(v * 32 + lane, count - 1);
                const uint4 x = input[v], a = first[at], b = second[at];
                llmk::mma_m16n8k16<T>(sums[0], {a.x, b.x, a.y, b.y}, x.x, x.y);
                llmk::mma_m16n8k16<T>(sums[1], {a.z, b.z, a.w, b.w}, x.z, x.w);
            }
            // Lane 4 g + t holds in elements 0 and 1 row g, columns 2 t and 2 t + 1: lane 4 g + g / 2 holds the
            // diagonal element.
            float of_tiles[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float even = sums[0][2 * i] + sums[1][2 * i], odd = sums[0][2 * i + 1] + sums[1][2 * i + 1];
                of_tiles[i] = lane / 4 % 2 == 0 ? even : odd;
#pragma unroll
                for (int distance : {4, 9, 18}) {  // lane distances from row g to rows g + 1, g + 2, g + 4
                    of_tiles[i] += __shfl_xor_sync(llmk::kAllLanes, of_tiles[i], distance);
                }
            }
            if (lane == 0) sums_of_tiles[tile] = of_tiles[0];
            if (lane == 0 && two) sums_of_tiles[tile + kWarps] = of_tiles[1];
        }
        __syncwarp();
        if (lane == 0) llmk::mbarrier_arrive(shared.empty + slots[0].place);
        if (lane == 0 && two_slots) llmk::mbarrier_arrive(shared.empty + slots[1].place);
    }
    if (lane == 0) llmk::mbarrier_arrive(shared.summed + turn.place);
}

template <typename T>
__device__ void multiply(const Work& work, const Shared& shared, Turn turn, Turn& ring) {
    const int longest = (work.vectors + (1 << work.shift) - 1) >> work.shift;
    switch ((longest + 31) / 32) {
        case 1:
            return multiply<T, 1>(work, shared, turn, ring);
        case 2:
            return multiply<T, 2>(work, shared, turn, ring);
        case 3:
            return multiply<T, 3>(work, shared, turn, ring);
        case 4:
            return multiply<T, 4>(work, shared, turn, ring);
        default:
            return multiply<T, kMostVectors>(work, shared, turn, ring);
    }
}

// ---- from sums to published words ----

// Return the address of a position's row in the cache of keys or values.
template <typename T>
__device__ __forceinline__ int page_of(const Model<T>& model, int position) {
    return model.table[position >> (31 - __clz(model.page_size))];
}
template <typename T>
__device__ __forceinline__ long long cache_row(const Model<T>& model, long long layer, int page, int kv_head,
                                               int position) {
    return (((layer * model.pages + page) * model.kv_heads + kv_head) * model.page_size +
            (position & (model.page_size - 1))) *
           model.head_dim;
}

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
__device__ __forceinline__ float silu(float x) { return x / (1.0f + __expf(-x)); }

// Encode a logit and its row in one integer with the order of the floats; of equal logits the lowest row is the
// largest.
__device__ __forceinline__ Word rank_of(float logit, int row) {
    const unsigned bits = __float_as_uint(logit);
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return static_cast<Word>(ordered) << 32 | (UINT_MAX - static_cast<unsigned>(row));
}

// Store two rows of queries, keys or values. Rows 2 p and 2 p + 1 of a head are columns p and p + rotary / 2, which
// RoPE combines, or columns that are not rotated.
template <typename T>
__device__ void give_query_key_value(const Model<T>& model, const Work& work, const float2* angle, int row, float2 two,
                                     int position, int page, unsigned epoch) {
    const int head = row / model.head_dim, pair = row % model.head_dim / 2, half = model.rotary / 2;
    const bool turned = pair < half;
    const int first = turned ? pair : 2 * pair, second = turned ? pair + half : 2 * pair + 1;
    if (turned && head < model.heads + model.kv_heads) {
        const float2 a = angle[pair];
        two = make_float2(two.x * a.x - two.y * a.y, two.y * a.x + two.x * a.y);
    }
    const T rounded[2] = {static_cast<T>(two.x), static_cast<T>(two.y)};
    if (head >= model.heads) two = make_float2(static_cast<float>(rounded[0]), static_cast<float>(rounded[1]));
    Word* words = model.qkv_words + head * model.head_dim;
    publish(words + first, two.x, epoch);
    publish(words + second, two.y, epoch);
    if (head >= model.heads) {  // store the key or value for later tokens
        const int other = head - model.heads;
        T* to = (other < model.kv_heads ? model.keys : model.values) +
                cache_row(model, work.layer, page, other % model.kv_heads, position);
        to[first] = rounded[0];
        to[second] = rounded[1];
    }
}

// The addends of a writer's two rows: the bias, and x. They are loaded before the sums are complete.
struct Known {
    float2 bias, x;
};
template <typename T>
__device__ Known fetch_known(const Model<T>& model, const Work& work, int i) {
    const int row = work.first + max(0, min(i, work.rows - 2));
    const bool biased = work.bias >= 0;
    // Both loads are unconditional; the caller ignores an addend that does not apply.
    return {*reinterpret_cast<const float2*>(model.parameters + (biased ? work.bias + row : 0)),
            *reinterpret_cast<const float2*>(work.output == kAddToX ? model.x + row : model.parameters)};
}

// Process the rows of one writer thread. The threads take groups of `row_group` neighboring rows in turn.
template <typename T>
__device__ void give_output(const Model<T>& model, const Work& work, const Shared& shared, Turn turn, int writer,
                            int position, int page, unsigned epoch) {
    const int parts = 1 << work.shift;
    int i = writer * work.row_group;
    Known known = {};
    if (i < work.rows && work.output != kLogits) known = fetch_known(model, work, i);
    llmk::mbarrier_wait_parity(shared.summed + turn.place, turn.parity);
    auto value = [&](int row) {  // row: counted from the block's first row
        const float* of_parts = shared.sums_of(turn.place) + (row << work.shift);
        float sum = 0;
#pragma unroll
        for (int part = 0; part < kWarps; ++part) {
            if (part < parts) sum += of_parts[part];
        }
        return sum;
    };
    if (work.output == kLogits) {
        Word best = 0;
        for (; i < work.rows; i += kWriters) {
            const float logit = value(i);
            model.logits[work.first + i] = logit;
            best = max(best, rank_of(logit, work.first + i));
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            best = max(best, __shfl_xor_sync(llmk::kAllLanes, best, distance));
        }
        if (writer % 32 == 0 && best > 0) atomicMax(model.best, best);
        return;
    }
    while (i < work.rows) {
        const int row = work.first + i;
        float2 two = make_float2(value(i), value(i + 1));
        if (work.bias >= 0) two = make_float2(two.x + known.bias.x, two.y + known.bias.y);
        if (work.output == kGateUp) {
            publish(model.hidden_words + row / 4, pack<T>(silu(two.x) * two.y, silu(value(i + 2)) * value(i + 3)),
                    epoch);
        } else if (work.output == kGelu) {
            publish(model.hidden_words + row / 2, pack<T>(gelu(two.x), gelu(two.y)), epoch);
        } else if (work.output == kAddToX) {
            two = make_float2(two.x + known.x.x, two.y + known.x.y);
            *reinterpret_cast<float2*>(model.x + row) = two;
            if (work.publishes) publish(model.x_words + row / 2, pack<T>(two.x, two.y), epoch);
        } else {
            give_query_key_value(model, work, shared.angle, row, two, position, page, epoch);
        }
        i += kWriters * work.row_group;
        if (i < work.rows) known = fetch_known(model, work, i);
    }
}

// Prefetch parameters of later phases that would otherwise come from memory: weights and biases of norms, biases.
template <typename T>
__device__ void prefetch_for(const Model<T>& model, const Work& work, int reader) {
    constexpr int kLine = 32;  // floats in 128 bytes
    if (work.kind != kLinear || work.rows == 0) return;
    const int at = reader * kLine;
    if (work.norm >= 0 && at < model.width) prefetch(model.parameters + work.norm + at);
    if (work.norm_bias >= 0 && at < model.width) prefetch(model.parameters + work.norm_bias + at);
    if (work.bias >= 0 && at < work.rows + kLine) {
        prefetch(model.parameters + work.bias + min(work.first + at, work.first + work.rows - 1));
    }
}

// Set x to the token's row of the table. Each writer keeps the numbers that it will add to later.
template <typename T>
__device__ void embed(const Model<T>& model, const Work& work, long long table, int writer, int position,
                      unsigned epoch) {
    const T* from = model.weights + table + static_cast<long long>(model.tokens[position]) * model.width + work.first;
    for (int i = writer * 2; i < work.rows; i += kWriters * 2) {
        const int row = work.first + i;
        const float2 x = make_float2(static_cast<float>(from[i]), static_cast<float>(from[i + 1]));
        *reinterpret_cast<float2*>(model.x + row) = x;
        publish(model.x_words + row / 2, pack<T>(x.x, x.y), epoch);
    }
}

// ---- attention ----

// Return eight columns of the key or value of this token, which another block may just have computed.
__device__ __forceinline__ void await_row(const Word* now, unsigned epoch, float (&numbers)[8]) {
    uint2 data[4];
    await_pairs(data, [&](int i) { return now + 2 * i; }, 4, epoch);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        numbers[2 * j] = __uint_as_float(data[j].x);
        numbers[2 * j + 1] = __uint_as_float(data[j].y);
    }
}

// Merge the online softmax (maximum, total, sum) with that of the lane at this distance.
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

// Attention of one query head over one part of the keys: `lanes` lanes hold a row, 8 columns each. sums: [kReaders /
// 32, head_dim], shared.
template <typename T>
__device__ void attend(const Model<T>& model, const Work& work, int lanes, int head, int part, int keys, int reader,
                       unsigned read, unsigned epoch, float* sums) {
    constexpr int kReadingWarps = kReaders / 32;
    __shared__ float largests[kReadingWarps], totals[kReadingWarps];
    const int lane = reader % 32, warp = reader / 32, rows = 32 / lanes;  // rows: keys that a warp reads at a time
    const int begin = lane % lanes * 8, stride = kReadingWarps * rows;
    const bool used = begin < model.head_dim;
    const int kv_head = head / (model.heads / model.kv_heads);
    const int each = keys_per_part(keys, model.splits);
    const int first = part * each, end = min(first + each, keys);
    const Word* query_now = model.qkv_words + head * model.head_dim + begin;
    const Word* key_now = model.qkv_words + (model.heads + kv_head) * model.head_dim + begin;
    const Word* value_now = key_now + model.kv_heads * model.head_dim;

    // Load the keys and values of earlier tokens before the query is complete.
    uint4 k = make_uint4(0, 0, 0, 0), v = k;
    auto fetch = [&](int key) {
        if (key >= min(end, keys - 1) || !used) return;
        const long long row = cache_row(model, work.layer, page_of(model, key), kv_head, key) + begin;
        k = *reinterpret_cast<const uint4*>(model.keys + row);
        v = *reinterpret_cast<const uint4*>(model.values + row);
    };
    int key = first + warp * rows + lane / lanes;
    fetch(key);

    float query[8] = {}, sum[8] = {}, largest = -INFINITY, total = 0;
    if (used) await_row(query_now, read, query);
#pragma unroll
    for (int j = 0; j < 8; ++j) query[j] *= model.scale * kLog2OfE;
    for (int base = first + warp * rows; base < end; base += stride, key += stride) {
        float numbers[8], values[8], score = 0;
        llmk::unpack<T>(k, numbers);
        llmk::unpack<T>(v, values);
        fetch(key + stride);
        if (key == keys - 1 && used) {
            await_row(key_now, read, numbers);
            await_row(value_now, read, values);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) score += query[j] * numbers[j];
        for (int distance = lanes / 2; distance > 0; distance /= 2) {
            score += __shfl_xor_sync(llmk::kAllLanes, score, distance);
        }
        if (key < end) {
            const float now = fmaxf(largest, score), old_share = exp2f(largest - now), share = exp2f(score - now);
            total = total * old_share + share;
#pragma unroll
            for (int j = 0; j < 8; ++j) sum[j] = sum[j] * old_share + share * values[j];
            largest = now;
        }
    }
    for (int distance = lanes; distance < 32; distance *= 2) merge_lanes(largest, total, sum, distance);

    if (lane < lanes && used) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[warp * model.head_dim + begin + j] = sum[j];
    }
    if (lane == 0) {
        largests[warp] = largest;
        totals[warp] = total;
    }
    llmk::bar_sync(kReadersBarrier, kReaders);
    for (int column = reader; column < model.head_dim; column += kReaders) {
        float m = -INFINITY, l = 0, weighted = 0;
#pragma unroll
        for (int w = 0; w < kReadingWarps; ++w) m = fmaxf(m, largests[w]);
#pragma unroll
        for (int w = 0; w < kReadingWarps; ++w) {
            const float share = exp2f(largests[w] - m);  // 0 for a warp without keys
            l += share * totals[w];
            weighted += share * sums[w * model.head_dim + column];
        }
        Word* to = model.part_words + (head * model.splits + part) * (model.head_dim + 2);
        publish(to + column, weighted / l, epoch);
        if (column < 2) publish(to + model.head_dim + column, m + log2f(l), epoch);  // words are read in pairs
    }
    llmk::bar_sync(kReadersBarrier, kReaders);  // all readers have read the sums, which the next call overwrites
}

// Prefetch the keys and values that this block will need to the L2 cache.
template <typename T>
__device__ void prefetch_keys(const Model<T>& model, const Work& work, int keys, int reader) {
    const int parts = parts_of(keys, model.splits), each = keys_per_part(keys, model.splits), size = model.page_size;
    for (int task = blockIdx.x; task < model.heads * parts; task += gridDim.x) {
        const int kv_head = task / parts / (model.heads / model.kv_heads), first = task % parts * each;
        for (int key = first / size * size + reader * size; key < min(first + each, keys); key += kReaders * size) {
            const long long row = cache_row(model, work.layer, page_of(model, key), kv_head, key);
            for (const T* rows : {model.keys + row, model.values + row}) {
                asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(rows),
                             "r"(size * model.head_dim * static_cast<int>(sizeof(T)))
                             : "memory");
            }
        }
    }
}

template <typename T>
__device__ void attention(const Model<T>& model, const Work& work, int keys, int reader, unsigned read, unsigned epoch,
                          float* sums) {
    const int parts = parts_of(keys, model.splits);
    const int lanes = model.head_dim <= 64 ? 8 : model.head_dim <= 128 ? 16 : 32;
    for (int task = blockIdx.x; task < model.heads * parts; task += gridDim.x) {
        attend(model, work, lanes, task / parts, task % parts, keys, reader, read, epoch, sums);
    }
}

// ---- the kernel ----

// The last block to arrive makes the next token an input and resets everything for the next launch.
template <typename T>
__device__ void advance(const Model<T>& model, int writer, int position, int launches) {
    llmk::bar_sync(kWritersBarrier, kWriters);
    if (writer != 0) return;
    __threadfence();
    if (atomicAdd(model.arrivals, 1u) != gridDim.x - 1) return;
    __threadfence();
    const Word best = atomicExch(model.best, 0ull);
    if (best > 0) {  // otherwise no logits were computed: the next token is part of the prompt
        model.tokens[position + 1] = static_cast<int>(UINT_MAX - static_cast<unsigned>(best));
    }
    model.state[0] = position + 1;
    model.state[1] = launches + 1;
    atomicExch(model.arrivals, 0u);
}

// Run phases first ... last - 1 of the list; compute logits only if requested. Several launches, each with some of the
// phases, can compute a token too: each launch loads its weights before the previous launch has ended.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    decode_kernel(const Model<T> model, int first, int last, bool logits, int slots, int slot_bytes, int flying,
                  int input_bytes, int sums_bytes) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t full[kMostSlots], empty[kMostSlots], meetings[6];
    __shared__ float2 angle[kMostHead / 2];
    Shared shared;
    unsigned char* at = memory;
    const auto next = [&at](long long bytes) {
        unsigned char* begin = at;
        at += bytes;
        return begin;
    };
    shared.ring = next(slots * static_cast<long long>(slot_bytes));
    shared.inputs = next(2LL * input_bytes);
    shared.attended = reinterpret_cast<float*>(next(kReaders / 32 * model.head_dim * sizeof(float)));
    shared.sums = next(2LL * sums_bytes);
    Work* works = reinterpret_cast<Work*>(at);
    shared.full = full;
    shared.empty = empty;
    shared.ready = meetings;
    shared.summed = meetings + 2;
    shared.given = meetings + 4;
    shared.works = works;
    shared.angle = angle;
    shared.slots = slots;
    shared.slot_bytes = slot_bytes;
    shared.flying = flying;
    shared.input_bytes = input_bytes;
    shared.sums_bytes = sums_bytes;

    if (threadIdx.x < kMostSlots) {
        llmk::mbarrier_init(&full[threadIdx.x], 1);
        llmk::mbarrier_init(&empty[threadIdx.x], kWarps);
    }
    if (threadIdx.x < 2) {
        llmk::mbarrier_init(shared.ready + threadIdx.x, kReaders / 32);
        llmk::mbarrier_init(shared.summed + threadIdx.x, kWarps);
        llmk::mbarrier_init(shared.given + threadIdx.x, kWriters / 32);
    }
    llmk::fence_mbarrier_init();
    plan(model.phases, first, last, logits, works);  // synchronizes the block
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    Turn turn;
    if (threadIdx.x < kWarps * 32) {
        Turn ring;
        for (int i = 0; i < last - first; ++i) {
            if (works[i].tiles == 0) continue;
            const Work work = works[i];
            multiply<T>(work, shared, turn, ring);
            turn.next(2);
        }
        return;
    }
    if (threadIdx.x >= kThreads - 32) {
        if (threadIdx.x == kThreads - 32) ask_for_weights<T>(shared, model.weights, last - first);
        return;
    }

    asm volatile("griddepcontrol.wait;" ::: "memory");
    const int position = model.state[0], launches = model.state[1];
    const unsigned epochs = static_cast<unsigned>(launches) * model.phase_count + 1;  // epoch of phase 0, never 0
    if (threadIdx.x < kWarps * 32 + kReaders) {
        const int reader = threadIdx.x - kWarps * 32;
        for (int number = first; number < last; ++number) {
            const Work work = works[number - first];
            const unsigned read = epochs + static_cast<unsigned>(work.source);
            if (work.kind == kAttention) {
                attention(model, work, position + 1, reader, read, epochs + number, shared.attended);
            } else if (work.tiles > 0) {  // a block without tiles writes nothing, so no writer waits until it has read
                for (int next = number - first + 1; next < min(last - first, number - first + 3); ++next) {
                    if (works[next].kind == kAttention) prefetch_keys(model, works[next], position + 1, reader);
                    prefetch_for(model, works[next], reader);
                }
                llmk::mbarrier_wait_parity(shared.summed + turn.place, turn.parity ^ 1);
                take_input(model, work, position + 1, reader, turn.place, read, shared.input(turn.place));
                if (reader % 32 == 0) llmk::mbarrier_arrive(shared.ready + turn.place);
                turn.next(2);
            }
        }
        return;
    }

    const int writer = threadIdx.x - kWarps * 32 - kReaders, page = page_of(model, position);
    for (int i = writer; i < model.rotary / 2; i += kWriters) {
        angle[i] =
            reinterpret_cast<const float2*>(model.rope)[static_cast<long long>(position) * (model.rotary / 2) + i];
    }
    llmk::bar_sync(kWritersBarrier, kWriters);
    for (int number = first; number < last; ++number) {
        const Work work = works[number - first];
        if (work.kind == kEmbed) {
            embed(model, work, model.phases[number].weights, writer, position, epochs + number);
        } else if (work.kind == kAdvance) {
            advance(model, writer, position, launches);
        } else if (work.tiles > 0) {
            give_output(model, work, shared, turn, writer, position, page, epochs + number);
            __syncwarp();
            if (writer % 32 == 0) llmk::mbarrier_arrive(shared.given + turn.place);
            turn.next(2);
        }
    }
}

// Run phases first ... last - 1 as one launch. `alone`: its blocks wait for each other, so all must be resident.
// Otherwise it may start before the previous launch has ended.
template <typename T>
void launch(const Model<T>& model, int first, int last, bool logits, int slots, int slot_bytes, int flying,
            int input_bytes, int sums_bytes, bool alone, cudaStream_t stream) {
    int device = 0, processors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    const size_t bytes = static_cast<size_t>(slots) * slot_bytes + 2 * (input_bytes + sums_bytes) +
                         kReaders / 32 * model.head_dim * sizeof(float) + sizeof(Work) * (last - first);
    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(decode_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(bytes));
    }
    if (error != cudaSuccess) return;  // the caller checks the last error

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
    cudaLaunchKernelEx(&config, decode_kernel<T>, model, first, last, logits, slots, slot_bytes, flying, input_bytes,
                       sums_bytes);
}

}  // namespace

// Weights, keys and values are bf16 if `bf16`, else f16.
extern "C" void decode(const short* weights, const float* parameters, const float* rope, const long long* phases,
                       short* keys, short* values, const int* table, int* tokens, int* state, float* x,
                       long long* x_words, long long* qkv_words, long long* part_words, long long* hidden_words,
                       float* logits, int* arrivals, long long* best, int phase_count, int width, int heads,
                       int kv_heads, int head_dim, int rotary, int page_size, int pages, int splits, float epsilon,
                       float scale, bool bf16, int first, int last, bool want_logits, int slots, int slot_bytes,
                       int flying, int input_bytes, int sums_bytes, bool alone, cudaStream_t stream) {
    const auto run = [&](auto zero) {
        using T = decltype(zero);
        const Model<T> model = {reinterpret_cast<const T*>(weights),
                                parameters,
                                rope,
                                reinterpret_cast<const Phase*>(phases),
                                reinterpret_cast<T*>(keys),
                                reinterpret_cast<T*>(values),
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
        launch(model, first, last, want_logits, slots, slot_bytes, flying, input_bytes, sums_bytes, alone, stream);
    };
    if (bf16) {
        run(__nv_bfloat16());
    } else {
        run(__half());
    }
}
