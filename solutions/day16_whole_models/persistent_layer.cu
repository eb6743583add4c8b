// One decoder layer for one token in one launch: RMSNorm, q, k and v, RoPE, attention over a paged cache, the output
// matrix and the residual, RMSNorm, SwiGLU and the residual.
//
// One block stays on each SM and computes its rows of all four matrices. A thread loads these rows to a ring in shared
// memory, in the order of their use, and waits for no input. Blocks exchange results in words of 64 bits, which contain
// the number of the phase that wrote them, so there is no barrier between phases.
//
//   x, out: [hidden]     norms: [2, hidden], before attention and before the MLP
//   weights: four row-major matrices, one after the other: q, k and v [(heads + 2 kv_heads) head_dim, hidden], the
//       output [hidden, heads head_dim], gate and up [2 inter, hidden], in turn, down [hidden, inter]
//   rope: [head_dim / 2, 2], cosine and sine for columns 2 p and 2 p + 1 of a head
//   k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     table: [max_pages]     words, state: the workspace
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/persistent_attention.cuh"
#include "llmk/persistent_inputs.cuh"
#include "llmk/persistent_multiply.cuh"
#include "llmk/persistent_prefetch.cuh"
#include "llmk/persistent_weights.cuh"

using namespace llmk::persistent;

enum { kQkvPhase, kAttentionPhase, kOutPhase, kGateUpPhase, kDownPhase, kPhases };
constexpr int kEpochs = 16;        // a launch adds this to state[0]
constexpr int kMostParts = 16;     // parts of a head's keys
constexpr int kFlying = 45 << 10;  // bytes of weights in flight per SM; more requests would only queue up

// Everything that the kernel needs. `model` has the pointers and sizes that the headers of day 16 use.
template <typename T>
struct Layer {
    Model<T> model;
    const T* x;
    T* out;
    int* state;       // [2]: a number larger than the epoch of every word; the number of blocks that have finished
    int inter, keys;  // keys: the number of keys that the token attends to, including its own
};

// Return the number of parts of a row of a matrix; one warp computes each part.
__host__ __device__ constexpr int parts_of_row(int columns) {
    constexpr int kMost = kMostVectors * 32 * 8;
    return columns <= kMost ? 1 : columns <= 2 * kMost ? 2 : columns <= 4 * kMost ? 4 : 8;
}

// Return this block's work in a phase that multiplies by a matrix. `shift` rotates the blocks, so that those with one
// more row differ from phase to phase.
__device__ Work rows_of_block(long long weights, int rows, int columns, int row_group, Input input, Output output,
                              int shift) {
    const int block = (blockIdx.x + shift) % gridDim.x, blocks = gridDim.x;
    const int groups = rows / row_group, each = groups / blocks, more = groups % blocks;
    Work work = {};
    work.kind = kLinear;
    work.input = input;
    work.output = output;
    work.row_group = row_group;
    work.first = (each * block + min(block, more)) * row_group;
    work.rows = (each + (block < more)) * row_group;
    work.weights = weights + static_cast<long long>(work.first) * columns;
    work.vectors = columns / 8;
    work.shift = __ffs(parts_of_row(columns)) - 1;
    work.tiles = work.rows << work.shift;
    work.norm = work.norm_bias = work.bias = -1;
    return work;
}

template <typename T>
__device__ void plan_layer(const Layer<T>& layer, Work* works) {
    const Model<T>& model = layer.model;
    const int qkv = (model.heads + 2 * model.kv_heads) * model.head_dim, attended = model.heads * model.head_dim;
    const long long width = model.width, out = qkv * width, gate_up = out + attended * width;
    const int rotated = 17;
    switch (threadIdx.x) {
        case kQkvPhase:
            works[kQkvPhase] = rows_of_block(0, qkv, model.width, 2, kRmsNormOfX, kQueryKeyValue, 0);
            break;
        case kAttentionPhase:
            works[kAttentionPhase] = Work{};
            works[kAttentionPhase].kind = kAttention;
            break;
        case kOutPhase:
            works[kOutPhase] = rows_of_block(out, model.width, attended, 2, kAttended, kAddToX, 0);
            break;
        case kGateUpPhase:
            works[kGateUpPhase] =
                rows_of_block(gate_up, 2 * layer.inter, model.width, 4, kRmsNormOfX, kGateUp, rotated);
            works[kGateUpPhase].norm = model.width;
            break;
        case kDownPhase:  // the same rows of x as the output matrix, because each thread adds to its own elements
            works[kDownPhase] =
                rows_of_block(gate_up + 2 * layer.inter * width, model.width, layer.inter, 2, kHidden, kAddToX, 0);
            break;
    }
}

// RMSNorm of the layer's input, which is complete before the launch.
template <typename T>
__device__ void normalize_x(const Layer<T>& layer, int reader, uint2* input) {
    const Model<T>& model = layer.model;
    const int fours = model.width / 4;
    uint2 bits[kMostPairs];
    float4 weight[kMostPairs];
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        const int at = reader + i * kReaders;
        bits[i] = at < fours ? reinterpret_cast<const uint2*>(layer.x)[at] : make_uint2(0, 0);
        weight[i] = at < fours ? reinterpret_cast<const float4*>(model.parameters)[at] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        const float2 a = unpack_two<T>(bits[i].x), b = unpack_two<T>(bits[i].y);
        squares += (a.x * a.x + a.y * a.y) + (b.x * b.x + b.y * b.y);
    }
    const float scale = rsqrtf(sum_of_readers(squares, reader, 0) / model.width + model.epsilon);
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        const int at = reader + i * kReaders;
        const float2 a = unpack_two<T>(bits[i].x), b = unpack_two<T>(bits[i].y);
        const float4 w = weight[i];
        if (at >= fours) continue;
        input[at] =
            make_uint2(pack<T>(a.x * scale * w.x, a.y * scale * w.y), pack<T>(b.x * scale * w.z, b.y * scale * w.w));
    }
    __syncwarp();
}

// Rotate two neighboring columns of a query or key, publish them, and store those of a key or value in the cache.
template <typename T>
__device__ void give_head_columns(const Layer<T>& layer, const float2* angle, int row, float2 two, unsigned epoch) {
    const Model<T>& model = layer.model;
    const int head = row / model.head_dim, column = row % model.head_dim, position = layer.keys - 1;
    if (head < model.heads + model.kv_heads) {
        const float2 a = angle[column / 2];
        two = make_float2(two.x * a.x - two.y * a.y, two.y * a.x + two.x * a.y);
    }
    if (head >= model.heads) {
        const unsigned rounded = pack<T>(two.x, two.y);
        const int other = head - model.heads;
        T* cache = other < model.kv_heads ? model.keys : model.values;
        const long long at = cache_row(model, 0, page_of(model, position), other % model.kv_heads, position) + column;
        *reinterpret_cast<unsigned*>(cache + at) = rounded;
        two = unpack_two<T>(rounded);  // the new key must be the one that later tokens will read
    }
    publish(model.qkv_words + row, two.x, epoch);
    publish(model.qkv_words + row + 1, two.y, epoch);
}

__device__ __forceinline__ float swiglu(float gate, float up) { return gate / (1.0f + __expf(-gate)) * up; }

// Return two neighboring elements of the residual stream, to which a phase adds.
template <typename T>
__device__ float2 residual_of(const Layer<T>& layer, int phase, int row) {
    if (phase == kOutPhase) return unpack_two<T>(*reinterpret_cast<const unsigned*>(layer.x + row));
    return *reinterpret_cast<const float2*>(layer.model.x + row);
}

// Add the parts of each row, and publish what follows from the rows of one writer.
template <typename T>
__device__ void give_rows(const Layer<T>& layer, const Work& work, const Shared& shared, Turn turn, int phase,
                          int writer, unsigned epoch) {
    const Model<T>& model = layer.model;
    const bool adds = work.output == kAddToX;
    int i = writer * work.row_group;
    float2 x = make_float2(0, 0);
    if (adds && i < work.rows) x = residual_of(layer, phase, work.first + i);  // before the sums are complete
    llmk::mbarrier_wait_parity(shared.summed + turn.place, turn.parity);
    const auto value = [&](int row) {
        float sum = 0;
        for (int part = 0; part < 1 << work.shift; ++part) {
            sum += shared.sums_of(turn.place)[(row << work.shift) + part];
        }
        return sum;
    };
    while (i < work.rows) {
        const int row = work.first + i;
        float2 two = make_float2(value(i), value(i + 1));
        if (work.output == kQueryKeyValue) {
            give_head_columns(layer, shared.angle, row, two, epoch);
        } else if (work.output == kGateUp) {
            const float first = swiglu(two.x, two.y), second = swiglu(value(i + 2), value(i + 3));
            publish(model.hidden_words + row / 4, pack<T>(first, second), epoch);
        } else {
            two = make_float2(two.x + x.x, two.y + x.y);
            const unsigned rounded = pack<T>(two.x, two.y);
            if (phase == kOutPhase) {
                *reinterpret_cast<float2*>(model.x + row) = two;
                publish(model.x_words + row / 2, rounded, epoch);
            } else {
                *reinterpret_cast<unsigned*>(layer.out + row) = rounded;
            }
        }
        i += kWriters * work.row_group;
        if (adds && i < work.rows) x = residual_of(layer, phase, work.first + i);
    }
}

template <typename T>
__device__ void read_inputs(const Layer<T>& layer, const Shared& shared, int reader, unsigned epoch) {
    const Model<T>& model = layer.model;
    Turn turn;
    for (int phase = 0; phase < kPhases; ++phase) {
        const Work work = shared.works[phase];
        if (phase == kQkvPhase) {
            prefetch_keys(model, shared.works[kAttentionPhase], layer.keys, reader);
            prefetch_for(model, shared.works[kGateUpPhase], reader);
        }
        if (phase == kAttentionPhase) {
            attention(model, work, layer.keys, reader, epoch + phase - 1, epoch + phase, shared.attended);
        } else if (work.tiles > 0) {
            void* input = shared.input(turn.place);
            llmk::mbarrier_wait_parity(shared.summed + turn.place, turn.parity ^ 1);
            if (phase == kQkvPhase) {
                normalize_x(layer, reader, static_cast<uint2*>(input));
            } else {
                take_input(model, work, layer.keys, reader, turn.place, epoch + phase - 1, input);
            }
            if (reader % 32 == 0) llmk::mbarrier_arrive(shared.ready + turn.place);
            turn.next(2);
        }
    }
}

template <typename T>
__device__ void multiply_rows(const Shared& shared) {
    Turn turn, ring;
    for (int phase = 0; phase < kPhases; ++phase) {
        const Work work = shared.works[phase];
        if (work.tiles == 0) continue;
        multiply<T>(work, shared, turn, ring);
        turn.next(2);
    }
}

template <typename T>
__device__ void write_outputs(const Layer<T>& layer, const Shared& shared, int writer, unsigned epoch) {
    Turn turn;
    for (int phase = 0; phase < kPhases; ++phase) {
        const Work work = shared.works[phase];
        if (work.tiles == 0) continue;
        give_rows(layer, work, shared, turn, phase, writer, epoch + phase);
        __syncwarp();
        if (writer % 32 == 0) llmk::mbarrier_arrive(shared.given + turn.place);
        turn.next(2);
    }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    layer_kernel(const Layer<T> layer, int slots, int slot_bytes, int flying, int input_bytes, int sums_bytes) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t full[kMostSlots], empty[kMostSlots], meetings[6];
    __shared__ float2 angle[kMostHead / 2];
    __shared__ Work works[kPhases];
    Shared shared = {};
    shared.ring = memory;
    shared.inputs = shared.ring + slots * slot_bytes;
    shared.sums = shared.inputs + 2 * input_bytes;
    shared.attended = reinterpret_cast<float*>(shared.sums + 2 * sums_bytes);
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
    plan_layer(layer, works);
    for (int i = threadIdx.x; i < layer.model.head_dim / 2; i += kThreads) {
        angle[i] = reinterpret_cast<const float2*>(layer.model.rope)[i];
    }
    const unsigned epoch = layer.state[0];
    __syncthreads();

    const int thread = threadIdx.x, reader = thread - kWarps * 32, writer = reader - kReaders;
    if (thread == kThreads - 32) {
        ask_for_weights<T>(shared, layer.model.weights, kPhases);
    } else if (reader < 0) {
        multiply_rows<T>(shared);
    } else if (writer < 0) {
        read_inputs(layer, shared, reader, epoch);
    } else if (writer < kWriters) {
        write_outputs(layer, shared, writer, epoch);
        llmk::bar_sync(kWritersBarrier, kWriters);
        if (writer == 0) {  // the last block prepares the workspace for the next launch
            __threadfence();
            if (atomicAdd(layer.state + 1, 1) == static_cast<int>(gridDim.x) - 1) {
                __threadfence();
                layer.state[0] = static_cast<int>(epoch) + kEpochs;
                layer.state[1] = 0;
            }
        }
    }
}

template <typename T>
void persistent_layer(const T* x, const float* norms, const T* weights, const float* rope, const int* table, T* k_cache,
                      T* v_cache, T* out, long long* words, int* state, int hidden, int heads, int kv_heads,
                      int head_dim, int inter, int page_size, int pages, int past, float eps, cudaStream_t stream) {
    Model<T> model = {};
    model.weights = weights;
    model.parameters = norms;
    model.rope = rope;
    model.keys = k_cache;
    model.values = v_cache;
    model.table = table;
    model.width = hidden;
    model.heads = heads;
    model.kv_heads = kv_heads;
    model.head_dim = model.rotary = head_dim;
    model.page_size = page_size;
    model.pages = pages;
    model.splits = kMostParts;
    model.epsilon = eps;
    model.scale = 1.0f / sqrtf(static_cast<float>(head_dim));
    model.x = reinterpret_cast<float*>(words);
    model.x_words = reinterpret_cast<Word*>(words) + hidden / 2;
    model.qkv_words = model.x_words + hidden / 2;
    model.part_words = model.qkv_words + (heads + 2 * kv_heads) * head_dim;
    model.hidden_words = model.part_words + heads * kMostParts * (head_dim + 2);
    const Layer<T> layer = {model, x, out, state, inter, past + 1};

    int device = 0, processors = 0, most_shared = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    const int columns[] = {hidden, heads * head_dim, hidden, inter}, groups[] = {2, 2, 4, 2};
    const int rows[] = {(heads + 2 * kv_heads) * head_dim, hidden, 2 * inter, hidden};
    int slot_bytes = 0, input_bytes = 0, sums_bytes = 0;
    for (int i = 0; i < 4; ++i) {
        const int parts = parts_of_row(columns[i]), row_bytes = columns[i] * static_cast<int>(sizeof(T));
        const int most_rows = (rows[i] / groups[i] + processors - 1) / processors * groups[i];
        slot_bytes = max(slot_bytes, kWarps / parts * row_bytes);
        input_bytes = max(input_bytes, row_bytes);
        sums_bytes = max(sums_bytes, (most_rows * parts + 3) / 4 * 16);
    }
    const int attended_bytes = kReaders / 32 * head_dim * static_cast<int>(sizeof(float)), static_bytes = 4096;
    const int other_bytes = 2 * (input_bytes + sums_bytes) + attended_bytes;
    const int slots = min(kMostSlots, (most_shared - static_bytes - other_bytes) / slot_bytes);
    const int flying = min(slots, max(1, kFlying / slot_bytes)), bytes = slots * slot_bytes + other_bytes;

    cudaFuncSetAttribute(layer_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaLaunchAttribute cooperative = {};  // the blocks wait for each other, so all must be resident
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(processors);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, layer_kernel<T>, layer, slots, slot_bytes, flying, input_bytes, sums_bytes);
}

extern "C" void persistent_layer_f16(const __half* x, const float* norms, const __half* weights, const float* rope,
                                     const int* table, __half* k_cache, __half* v_cache, __half* out, long long* words,
                                     int* state, int hidden, int heads, int kv_heads, int head_dim, int inter,
                                     int page_size, int pages, int past, float eps, cudaStream_t stream) {
    persistent_layer(x, norms, weights, rope, table, k_cache, v_cache, out, words, state, hidden, heads, kv_heads,
                     head_dim, inter, page_size, pages, past, eps, stream);
}

extern "C" void persistent_layer_bf16(const __nv_bfloat16* x, const float* norms, const __nv_bfloat16* weights,
                                      const float* rope, const int* table, __nv_bfloat16* k_cache,
                                      __nv_bfloat16* v_cache, __nv_bfloat16* out, long long* words, int* state,
                                      int hidden, int heads, int kv_heads, int head_dim, int inter, int page_size,
                                      int pages, int past, float eps, cudaStream_t stream) {
    persistent_layer(x, norms, weights, rope, table, k_cache, v_cache, out, words, state, hidden, heads, kv_heads,
                     head_dim, inter, page_size, pages, past, eps, stream);
}
