// Correct alternative: a grid-stride loop with a fixed number of blocks; silu is computed with tanh, which cannot
// overflow
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

__device__ float gated(float gate, float up) { return 0.5f * gate * (1.0f + tanhf(0.5f * gate)) * up; }

// gate, up, out: [n]
template <typename T, bool VECTORS>
__global__ void swiglu_walk(const T* gate, const T* up, T* out, long long n) {
    constexpr int per_vector = VECTORS ? 16 / sizeof(T) : 1;
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    if (VECTORS) {
        for (long long i = first; i < n / per_vector; i += step) {
            float4 a = reinterpret_cast<const float4*>(gate)[i];
            const float4 b = reinterpret_cast<const float4*>(up)[i];
            T* g = reinterpret_cast<T*>(&a);
            const T* u = reinterpret_cast<const T*>(&b);
            for (int j = 0; j < per_vector; ++j) store(g + j, gated(to_float(g[j]), to_float(u[j])));
            reinterpret_cast<float4*>(out)[i] = a;
        }
    }
    const long long done = VECTORS ? n / per_vector * per_vector : 0;
    for (long long i = done + first; i < n; i += step) store(out + i, gated(to_float(gate[i]), to_float(up[i])));
}

template <typename T>
void swiglu(const T* gate, const T* up, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    const bool aligned = ((uintptr_t)gate | (uintptr_t)up | (uintptr_t)out) % 16 == 0;
    if (aligned) {
        swiglu_walk<T, true><<<40, 128, 0, stream>>>(gate, up, out, n);
    } else {
        swiglu_walk<T, false><<<40, 128, 0, stream>>>(gate, up, out, n);
    }
}

// gate, up, out: [n]
