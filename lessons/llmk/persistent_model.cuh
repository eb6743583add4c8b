// Day 16's persistent kernel: its list of phases, and the tensors of a model that they read and write.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace llmk::persistent {

// The warps of a block: multipliers, then readers, then writers, and a last one that loads weights.
constexpr int kWarps = 8;
constexpr int kReaders = 5 * 32, kWriters = 2 * 32;  // threads
constexpr int kThreads = kWarps * 32 + kReaders + kWriters + 32;
constexpr int kMostSlots = 16;   // stages of the ring
constexpr int kMostVectors = 5;  // 8-column vectors of a linear layer's input per lane
constexpr int kMostPairs = 4;    // pairs of words that one reader normalizes
constexpr int kMostRead = 4;     // pairs of words that one reader reads at a time from inputs without a norm
constexpr int kMostHead = 256;
constexpr int kSmallestPart = 128;  // in keys; with fewer, the work is too small for a block
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

}  // namespace llmk::persistent
