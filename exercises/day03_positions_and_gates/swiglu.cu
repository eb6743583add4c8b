// SwiGLU gate: out[i] = silu(gate[i]) * up[i].
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ float to_float(float x) { return x; }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void store(float* p, float x) { *p = x; }
__device__ void store(__half* p, float x) { *p = __float2half(x); }
__device__ void store(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// TODO: silu(gate) * up in float; and the kernels: one that moves 16 bytes per thread and access, one for any
// alignment.

template <typename T>
void swiglu(const T* gate, const T* up, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    constexpr int per_vector = sizeof(uint4) / sizeof(T);
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
