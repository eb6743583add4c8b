// A whole model in one kernel: one launch reads the last token and writes the next one.
//
// When one sequence decodes, a token costs the time in which the weights come from memory, if nothing else takes time. A
// kernel for each operator spends more on starting, filling and draining than on its weights. Here all blocks stay, one on
// each SM, and walk through a list of phases together; between phases that need each other's results they meet. Weights
// depend on nothing, so one warp of each block, the *producer*, fetches the block's rows of all phases in order to a ring
// in shared memory, as far ahead as the ring allows, and does not stop when the others wait for each other.
//
// The list of phases is data (persistent_decode.py makes it from a model), so this file knows operators, not models.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <climits>
#include <cstdint>

#include "llmk/decode.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/reduce.cuh"

namespace {

constexpr int kWorkers = 8;  // warps that compute
constexpr int kWorkerThreads = 32 * kWorkers;
constexpr int kThreads = kWorkerThreads + 32;  // and the producer's warp
constexpr int kMostStages = 32;                // of the ring
constexpr int kMostVectors = 10;               // pieces of 8 columns that a lane holds of the input
constexpr int kWorkersMeet = 1;                // number of the workers' barrier

enum Kind { kEmbed, kLinear, kAttention, kAdvance };
enum Input { kRmsNormOfX, kLayerNormOfX, kAttended, kHidden };
enum Output { kQueryKeyValue, kAddToX, kGelu, kGateUp, kLogits };

// One entry of the list, 16 numbers; persistent_decode.py has the same names in the same order. Offsets count elements.
struct Phase {
    long long kind;
    long long weights;        // linear: offset of the matrix [rows, columns]; embed: of the table [vocabulary, hidden]
    long long rows, columns;  // of the matrix
    long long together;       // so many neighbouring rows are one block's: 2 where an output needs a pair, else 1
    long long input, output;  // linear
    long long norm, norm_bias;  // offsets in parameters, or -1
    long long bias;             // offset in parameters, or -1
    long long layer;            // whose keys and values
    long long meet;             // whether the blocks meet afterwards
    long long warps;            // that share a row: 1, 2, 4 or 8
    long long shift;            // which blocks get one row more than others; the same where phases add to x in turn
    long long reserved[2];
};

// What all phases share. T is __half or __nv_bfloat16.
template <typename T>
struct Model {
    const T* weights;         // all matrices
    const float* parameters;  // weights and biases of norms, biases of products
    const float* rope;        // [positions, rotary / 2, 2]: cosine and sine
    const Phase* phases;
    T* keys;                   // [layers, pages, kv_heads, page_size, head_dim]
    T* values;                 // the same
    const int* table;          // [most pages of a sequence]: the page that holds rows page_size * i ...
    int* tokens;               // [most tokens]: the prompt, then what was generated
    int* position;             // [1]: of the token that is read now; so many keys are in the cache
    float* x;                  // [hidden]: the residual stream
    float* query;              // [heads, head_dim]
    float* hidden;             // [intermediate]
    float* partial;            // [heads, splits, head_dim]: weighted sums of values
    float* statistics;         // [heads, splits, 2]: the largest score, and the sum of exp(score - largest)
    float* logits;             // [vocabulary]
    unsigned* arrivals;        // [1]: zero between launches
    unsigned long long* best;  // [1]: zero between launches
    int width;                 // hidden size
    int heads, kv_heads, head_dim, rotary, page_size, pages, splits;
    float epsilon, scale;
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

// Shared memory: the ring, then what the workers exchange.
struct Shared {
    unsigned char* ring;  // [stages, stage_bytes]
    uint64_t *full, *empty;
    float* input;  // [most columns]
    float* sums;   // [most rows of a block, warps that share a row]
    int stages, stage_bytes;

    __device__ int rows_in_stage(const Phase& phase) const {
        return max(1, stage_bytes / static_cast<int>(phase.columns * 2));
    }
};

__device__ __forceinline__ void workers_meet() { llmk::meet(kWorkersMeet, kWorkerThreads); }

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

template <typename T>
__device__ void produce(const Model<T>& model, const Shared& shared, int first, int last, bool logits) {
    Slot slot;
    for (int number = first; number < last; ++number) {
        const Phase& phase = model.phases[number];
        if (phase.kind != kLinear || (phase.output == kLogits && !logits)) continue;
        const Share rows = share_of(phase);
        const int step = shared.rows_in_stage(phase);
        for (int row = rows.first; row < rows.end; row += step) {
            const unsigned bytes = static_cast<unsigned>(min(step, rows.end - row) * phase.columns * sizeof(T));
            llmk::wait(&shared.empty[slot.stage], slot.parity ^ 1);
            llmk::arrive_and_expect(&shared.full[slot.stage], bytes);
            copy_bulk(shared.ring + static_cast<long long>(slot.stage) * shared.stage_bytes,
                      model.weights + phase.weights + row * phase.columns, bytes, &shared.full[slot.stage]);
            slot.next(shared.stages);
        }
    }
}

// ---- what the workers do between products ----

// The sum over all workers; calls are numbered alternately 0 and 1, so that no second barrier is needed.
__device__ __forceinline__ float sum_of_workers(float mine, int call) {
    __shared__ float partial[2][kWorkers];
    mine = llmk::warp_sum(mine);
    if (threadIdx.x % 32 == 0) partial[call][threadIdx.x / 32] = mine;
    workers_meet();
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWorkers; ++warp) sum += partial[call][warp];
    return sum;
}

// Into how many parts the keys are split, each of which has some.
__device__ __forceinline__ int parts_of(int keys, int splits) {
    const int each = llmk::keys_per_part(keys, splits);
    return (keys + each - 1) / each;
}

// Puts the input of a product into shared memory.
template <typename T>
__device__ void take_input(const Model<T>& model, const Phase& phase, int keys, float* input) {
    const int columns = static_cast<int>(phase.columns), parts = parts_of(keys, model.splits);
    if (phase.input == kAttended) {
        for (int i = threadIdx.x; i < columns; i += kWorkerThreads) {
            const int head = i / model.head_dim, d = i % model.head_dim;
            float largest = -INFINITY, sum = 0, weighted = 0;
            for (int split = 0; split < parts; ++split) {
                const long long part = static_cast<long long>(head) * model.splits + split;
                const float m = model.statistics[part * 2];
                const float now = fmaxf(largest, m), old_share = exp2f(largest - now), share = exp2f(m - now);
                sum = sum * old_share + model.statistics[part * 2 + 1] * share;
                weighted = weighted * old_share + model.partial[part * model.head_dim + d] * share;
                largest = now;
            }
            input[i] = weighted / sum;
        }
    } else if (phase.input == kHidden) {
        for (int i = threadIdx.x * 4; i < columns; i += kWorkerThreads * 4) {
            *reinterpret_cast<float4*>(input + i) = *reinterpret_cast<const float4*>(model.hidden + i);
        }
    } else {
        float sum = 0, squares = 0;
        for (int i = threadIdx.x * 4; i < columns; i += kWorkerThreads * 4) {
            const float4 x = *reinterpret_cast<const float4*>(model.x + i);
            *reinterpret_cast<float4*>(input + i) = x;  // only this thread reads it before the workers meet
            sum += x.x + x.y + x.z + x.w;
            squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
        }
        float mean = 0;
        if (phase.input == kLayerNormOfX) {
            mean = sum_of_workers(sum, 0) / columns;
            squares = 0;
            for (int i = threadIdx.x * 4; i < columns; i += kWorkerThreads * 4) {
                for (int j = 0; j < 4; ++j) squares += (input[i + j] - mean) * (input[i + j] - mean);
            }
        }
        const float scale = rsqrtf(sum_of_workers(squares, 1) / columns + model.epsilon);
        const float* weight = model.parameters + phase.norm;
        const float* bias = phase.norm_bias >= 0 ? model.parameters + phase.norm_bias : nullptr;
        for (int i = threadIdx.x * 4; i < columns; i += kWorkerThreads * 4) {
            for (int j = 0; j < 4; ++j) {
                input[i + j] = (input[i + j] - mean) * scale * weight[i + j] + (bias ? bias[i + j] : 0.0f);
            }
        }
    }
    workers_meet();
}

// Where the row of a position lies in the cache of keys or values.
template <typename T>
__device__ __forceinline__ long long cache_row(const Model<T>& model, long long layer, int kv_head, int position) {
    const int page = model.table[position / model.page_size];
    return (((layer * model.pages + page) * model.kv_heads + kv_head) * model.page_size + position % model.page_size) *
           model.head_dim;
}

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

// A number whose order among unsigned ones is that of the floats; among equal ones the lowest row is the largest.
__device__ __forceinline__ unsigned long long rank_of(float logit, int row) {
    const unsigned bits = __float_as_uint(logit);
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return static_cast<unsigned long long>(ordered) << 32 | (UINT_MAX - static_cast<unsigned>(row));
}

// Writes the block's rows of a product, whose sums over columns are in `sums`.
template <typename T>
__device__ void give_output(const Model<T>& model, const Phase& phase, const Share& rows, const float* sums,
                            int position) {
    const int warps = static_cast<int>(phase.warps);
    auto value = [&](int row) {
        float sum = phase.bias >= 0 ? model.parameters[phase.bias + row] : 0.0f;
        for (int warp = 0; warp < warps; ++warp) sum += sums[(row - rows.first) * warps + warp];
        return sum;
    };
    unsigned long long best = 0;
    const int together = static_cast<int>(phase.together);
    for (int row = rows.first + threadIdx.x * together; row < rows.end; row += kWorkerThreads * together) {
        const float a = value(row), b = together == 2 ? value(row + 1) : 0.0f;
        if (phase.output == kAddToX) {
            model.x[row] += a;
        } else if (phase.output == kGelu) {
            model.hidden[row] = gelu(a);
        } else if (phase.output == kGateUp) {
            model.hidden[row / 2] = a / (1.0f + __expf(-a)) * b;
        } else if (phase.output == kLogits) {
            model.logits[row] = a;
            best = max(best, rank_of(a, row));
        } else {
            // Rows 2 p and 2 p + 1 of a head are the columns p and p + rotary / 2 that a rotation turns, or neighbours.
            const int head = row / model.head_dim, pair = row % model.head_dim / 2, half = model.rotary / 2;
            const bool turned = pair < half;
            const int first = turned ? pair : 2 * pair, second = turned ? pair + half : 2 * pair + 1;
            float low = a, high = b;
            if (turned && head < model.heads + model.kv_heads) {
                const float2 angle =
                    *reinterpret_cast<const float2*>(model.rope + (static_cast<long long>(position) * half + pair) * 2);
                low = a * angle.x - b * angle.y;
                high = b * angle.x + a * angle.y;
            }
            if (head < model.heads) {
                model.query[head * model.head_dim + first] = low;
                model.query[head * model.head_dim + second] = high;
            } else {
                const int other = head - model.heads;
                T* cache = other < model.kv_heads ? model.keys : model.values;
                T* to = cache + cache_row(model, phase.layer, other % model.kv_heads, position);
                to[first] = static_cast<T>(low);
                to[second] = static_cast<T>(high);
            }
        }
    }
    if (phase.output == kLogits) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            best = max(best, __shfl_xor_sync(llmk::kAllLanes, best, distance));
        }
        if (threadIdx.x % 32 == 0 && best > 0) atomicMax(model.best, best);
    }
}

// The block's rows times the input. A row belongs to `warps` neighbouring warps, each of which has a part of its columns:
// the lanes keep what they need of the input in registers, and go through the rows as they arrive.
template <typename T>
__device__ void multiply(const Model<T>& model, const Phase& phase, const Share& rows, const Shared& shared,
                         Slot& slot) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warps = static_cast<int>(phase.warps), teams = kWorkers / warps;
    const int team = warp / warps, part = warp % warps;
    const int vectors = static_cast<int>(phase.columns / 8);  // of 8 columns, 16 bytes
    const int begin = vectors * part / warps, end = vectors * (part + 1) / warps;

    float input[kMostVectors][8];
#pragma unroll
    for (int v = 0; v < kMostVectors; ++v) {
        const int vector = begin + v * 32 + lane;
#pragma unroll
        for (int j = 0; j < 8; ++j) input[v][j] = vector < end ? shared.input[vector * 8 + j] : 0.0f;
    }

    const int step = shared.rows_in_stage(phase);
    int mine = team;  // the next row of this team, counted from the block's first
    for (int first = 0; first < rows.end - rows.first; first += step) {
        const int stop = min(first + step, rows.end - rows.first);
        llmk::wait(&shared.full[slot.stage], slot.parity);
        const uint4* stage =
            reinterpret_cast<const uint4*>(shared.ring + static_cast<long long>(slot.stage) * shared.stage_bytes);
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

// One part of the keys for one query head: kLanes lanes hold a row, 8 columns each.
template <typename T, int kLanes>
__device__ void attend(const Model<T>& model, const Phase& phase, int head, int split, int keys, float* exchange) {
    constexpr int kRows = 32 / kLanes;  // keys of a warp at a time
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int column = lane % kLanes * 8;
    const bool used = column < model.head_dim;
    const int kv_head = head / (model.heads / model.kv_heads);
    const int each = llmk::keys_per_part(keys, model.splits);
    const int first = split * each, end = min(first + each, keys);

    float query[8], sum[8] = {}, largest = -INFINITY, total = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        query[j] = used ? model.query[head * model.head_dim + column + j] * model.scale * 1.44269504f : 0.0f;
    }
    for (int base = first + warp * kRows; base < end; base += kWorkers * kRows) {
        const int key = base + lane / kLanes;
        const bool there = key < end;
        uint4 k = make_uint4(0, 0, 0, 0), v = k;
        if (there && used) {
            const long long row = cache_row(model, phase.layer, kv_head, key) + column;
            k = *reinterpret_cast<const uint4*>(model.keys + row);
            v = *reinterpret_cast<const uint4*>(model.values + row);
        }
        float numbers[8], score = 0;
        llmk::unpack<T>(k, numbers);
#pragma unroll
        for (int j = 0; j < 8; ++j) score += query[j] * numbers[j];
        score = llmk::warp_sum<kLanes>(score);
        if (there) {
            const float now = fmaxf(largest, score), old_share = exp2f(largest - now), share = exp2f(score - now);
            llmk::unpack<T>(v, numbers);
            total = total * old_share + share;
#pragma unroll
            for (int j = 0; j < 8; ++j) sum[j] = sum[j] * old_share + share * numbers[j];
            largest = now;
        }
    }

    // Each group of lanes has a maximum of its own: [groups, head_dim + 2] in shared memory, merged by a thread a column.
    const int group = warp * kRows + lane / kLanes, stride = model.head_dim + 2;
    if (used) {
#pragma unroll
        for (int j = 0; j < 8; ++j) exchange[group * stride + column + j] = sum[j];
        if (column == 0) {
            exchange[group * stride + model.head_dim] = largest;
            exchange[group * stride + model.head_dim + 1] = total;
        }
    }
    workers_meet();
    const long long to = static_cast<long long>(head) * model.splits + split;
    for (int d = threadIdx.x; d < model.head_dim; d += kWorkerThreads) {
        float m = -INFINITY, weighted = 0, l = 0;
        for (int g = 0; g < kWorkers * kRows; ++g) m = fmaxf(m, exchange[g * stride + model.head_dim]);
        for (int g = 0; g < kWorkers * kRows; ++g) {
            const float its = exchange[g * stride + model.head_dim];
            if (its == -INFINITY) continue;
            const float share = exp2f(its - m);
            weighted += share * exchange[g * stride + d];
            l += share * exchange[g * stride + model.head_dim + 1];
        }
        model.partial[to * model.head_dim + d] = weighted;
        if (d == 0) {
            model.statistics[to * 2] = m;
            model.statistics[to * 2 + 1] = l;
        }
    }
    workers_meet();  // before `exchange` is used again
}

// ---- the kernel ----

// All blocks meet: what each wrote before is seen by all afterwards. `expected` arrivals were made in this launch by then.
__device__ __forceinline__ void blocks_meet(unsigned* arrivals, unsigned expected) {
    workers_meet();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
        unsigned seen;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrivals) : "memory");
        } while (seen < expected);
    }
    workers_meet();
}

// The last block to come here makes the next token an input, and everything ready for the next launch.
template <typename T>
__device__ void advance(const Model<T>& model, int position, unsigned before) {
    workers_meet();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(model.arrivals, 1u) != before + gridDim.x - 1) return;
    __threadfence();
    const unsigned long long best = atomicExch(model.best, 0ull);
    if (best > 0) {  // else no logits were computed: the next token is one of the prompt's
        model.tokens[position + 1] = static_cast<int>(UINT_MAX - static_cast<unsigned>(best));
    }
    *model.position = position + 1;
    atomicExch(model.arrivals, 0u);
}

// Phases first ... last - 1 of the list, the logits only where they are wanted. Several launches for one token, one for each phase after which blocks meet, may
// overlap: the weights are fetched before the launch before has ended.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1) decode_kernel(const Model<T> model, int first, int last, bool logits,
                                                             int stages, int stage_bytes, int input_floats) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t barriers[2 * kMostStages];
    Shared shared;
    shared.ring = memory;
    shared.full = barriers;
    shared.empty = barriers + kMostStages;
    shared.input = reinterpret_cast<float*>(memory + static_cast<long long>(stages) * stage_bytes);
    shared.sums = shared.input + input_floats;
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
    Slot slot;
    unsigned met = 0;  // arrivals of all blocks so far
    const int position = *model.position;
    for (int number = first; number < last; ++number) {
        const Phase phase = model.phases[number];
        if (phase.kind == kEmbed) {
            const T* row = model.weights + phase.weights + static_cast<long long>(model.tokens[position]) * model.width;
            for (int i = blockIdx.x * kWorkerThreads + threadIdx.x; i < model.width; i += gridDim.x * kWorkerThreads) {
                model.x[i] = static_cast<float>(row[i]);
            }
        } else if (phase.kind == kLinear) {
            if (phase.output == kLogits && !logits) continue;
            const Share rows = share_of(phase);
            take_input(model, phase, position + 1, shared.input);
            multiply(model, phase, rows, shared, slot);
            give_output(model, phase, rows, shared.sums, position);
        } else if (phase.kind == kAttention) {
            const int parts = parts_of(position + 1, model.splits);
            for (int task = blockIdx.x; task < model.heads * parts; task += gridDim.x) {
                const int head = task / parts, split = task % parts;
                if (model.head_dim <= 64) {
                    attend<T, 8>(model, phase, head, split, position + 1, shared.input);
                } else if (model.head_dim <= 128) {
                    attend<T, 16>(model, phase, head, split, position + 1, shared.input);
                } else {
                    attend<T, 32>(model, phase, head, split, position + 1, shared.input);
                }
            }
        } else {
            advance(model, position, met);
        }
        if (phase.meet && number + 1 < last) {
            met += gridDim.x;
            blocks_meet(model.arrivals, met);
        }
    }
}

// Phases first ... last - 1 as one launch. `meets`: blocks wait for each other in it, so all must run at once. `early`: the
// launch may begin before the one before it has ended.
template <typename T>
void launch(const Model<T>& model, int first, int last, bool logits, int stages, int stage_bytes, int input_floats,
            int sums_floats, bool meets, bool early, cudaStream_t stream) {
    int device = 0, processors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    const size_t bytes = static_cast<size_t>(stages) * stage_bytes + (input_floats + sums_floats) * sizeof(float);
    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(decode_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(bytes));
    }
    if (error != cudaSuccess) return;  // the caller asks for the last error

    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = meets;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = early;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(processors);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    cudaLaunchKernelEx(&config, decode_kernel<T>, model, first, last, logits, stages, stage_bytes, input_floats);
}

}  // namespace

extern "C" void decode_f16(const __half* weights, const float* parameters, const float* rope, const long long* phases,
                           __half* keys, __half* values, const int* table, int* tokens, int* position, float* x,
                           float* query, float* hidden, float* partial, float* statistics, float* logits, int* arrivals,
                           long long* best, int width, int heads, int kv_heads, int head_dim, int rotary, int page_size,
                           int pages, int splits, float epsilon, float scale, int first, int last, bool want_logits,
                           int stages, int stage_bytes, int input_floats, int sums_floats, bool meets, bool early,
                           cudaStream_t stream) {
    const Model<__half> model = {weights,
                                 parameters,
                                 rope,
                                 reinterpret_cast<const Phase*>(phases),
                                 keys,
                                 values,
                                 table,
                                 tokens,
                                 position,
                                 x,
                                 query,
                                 hidden,
                                 partial,
                                 statistics,
                                 logits,
                                 reinterpret_cast<unsigned*>(arrivals),
                                 reinterpret_cast<unsigned long long*>(best),
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
    launch(model, first, last, want_logits, stages, stage_bytes, input_floats, sums_floats, meets, early, stream);
}

extern "C" void decode_bf16(const __nv_bfloat16* weights, const float* parameters, const float* rope,
                            const long long* phases, __nv_bfloat16* keys, __nv_bfloat16* values, const int* table,
                            int* tokens, int* position, float* x, float* query, float* hidden, float* partial,
                            float* statistics, float* logits, int* arrivals, long long* best, int width, int heads,
                            int kv_heads, int head_dim, int rotary, int page_size, int pages, int splits, float epsilon,
                            float scale, int first, int last, bool want_logits, int stages, int stage_bytes,
                            int input_floats, int sums_floats, bool meets, bool early, cudaStream_t stream) {
    const Model<__nv_bfloat16> model = {weights,
                                        parameters,
                                        rope,
                                        reinterpret_cast<const Phase*>(phases),
                                        keys,
                                        values,
                                        table,
                                        tokens,
                                        position,
                                        x,
                                        query,
                                        hidden,
                                        partial,
                                        statistics,
                                        logits,
                                        reinterpret_cast<unsigned*>(arrivals),
                                        reinterpret_cast<unsigned long long*>(best),
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
    launch(model, first, last, want_logits, stages, stage_bytes, input_floats, sums_floats, meets, early, stream);
}
