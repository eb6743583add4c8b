// A whole model in one kernel: one launch reads the last token and writes the next one.
//
// When one sequence is decoded, a token takes at least the time to read all weights from memory. A kernel per
// operator spends more time on its launch and on filling and draining the memory pipeline than on reading weights. Here one
// block stays on each SM, and all blocks run through a list of phases. The headers explain the parts, in this order:
//
//     persistent_model      the phases and the tensors of a model, as data
//     persistent_work       the rows of a block in each phase, and its shared memory
//     persistent_words      data that blocks exchange, without a barrier
//     persistent_weights    weights that one thread loads ahead of their use
//     persistent_norm       readers: the residual stream, normalized
//     persistent_cache      places in the cache of keys and values
//     persistent_inputs     readers: the other inputs of a matmul
//     persistent_multiply   multipliers: the dot products of rows and an input
//     persistent_outputs    writers: RoPE, biases, activations, the residual, the argmax
//     persistent_attention  readers: attention
//     persistent_prefetch   readers: prefetches for later phases; writers: the embedding
//     persistent_loop       the kernel that combines them
//
// The list of phases is data, which persistent_decode.py creates from a model: these files know operators, not models.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/persistent_loop.cuh"

namespace {

using namespace llmk::persistent;

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
