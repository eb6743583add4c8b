// Rotary position embedding, rotate-half: channel i of each head is paired with channel i + rotary_dim / 2.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

// TODO: a kernel that computes cos and sin of each angle once per token and rotates every head with them. Copy the
// channels from rotary_dim on. (The course's own kernel is a template over the number of channels per access.)

template <typename T>
void rope(const T* x, const int* positions, T* out, int tokens, int heads, int head_dim, int rotary_dim, float theta,
          cudaStream_t stream) {
    if (tokens == 0 || heads == 0 || head_dim == 0) return;
    // TODO: launch it.
}

// x, out: [tokens, heads, head_dim]   positions: [tokens]
extern "C" void rope_f32(const float* x, const int* positions, float* out, int tokens, int heads, int head_dim,
                         int rotary_dim, float theta, cudaStream_t stream) {
    rope(x, positions, out, tokens, heads, head_dim, rotary_dim, theta, stream);
}

extern "C" void rope_f16(const __half* x, const int* positions, __half* out, int tokens, int heads, int head_dim,
                         int rotary_dim, float theta, cudaStream_t stream) {
    rope(x, positions, out, tokens, heads, head_dim, rotary_dim, theta, stream);
}

extern "C" void rope_bf16(const __nv_bfloat16* x, const int* positions, __nv_bfloat16* out, int tokens, int heads,
                          int head_dim, int rotary_dim, float theta, cudaStream_t stream) {
    rope(x, positions, out, tokens, heads, head_dim, rotary_dim, theta, stream);
}
