// SwiGLU gate: out[i] = silu(gate[i]) * up[i].
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

// TODO: silu(gate) * up in float, and two kernels: one that moves 16 bytes per thread and access, one for any
// alignment.

template <typename T>
void swiglu(const T* gate, const T* up, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    constexpr int per_vector = llmk::kVectorWidth<T>;
    // TODO: choose the kernel by the alignment of the three pointers, and launch it.
}

// gate, up, out: [n]
extern "C" void swiglu_f32(const float* gate, const float* up, float* out, long long n, cudaStream_t stream) {
    swiglu(gate, up, out, n, stream);
}

extern "C" void swiglu_f16(const __half* gate, const __half* up, __half* out, long long n, cudaStream_t stream) {
    swiglu(gate, up, out, n, stream);
}

extern "C" void swiglu_bf16(const __nv_bfloat16* gate, const __nv_bfloat16* up, __nv_bfloat16* out, long long n,
                            cudaStream_t stream) {
    swiglu(gate, up, out, n, stream);
}
