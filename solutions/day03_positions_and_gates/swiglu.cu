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

// For x below -88, expf(-x) is infinity and the quotient 0, as it should be: no special case, no NaN.
__device__ float gated(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

// Sixteen bytes of each array per thread; the last block also takes the elements after the last whole vector.
// gate, up, out: [n], multiples of 16 bytes
template <typename T>
__global__ void swiglu_vectors(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ out, long long n) {
    constexpr int per_vector = sizeof(uint4) / sizeof(T);
    const long long vectors = n / per_vector;
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < vectors) {
        const uint4 gate_raw = reinterpret_cast<const uint4*>(gate)[i];
        const uint4 up_raw = reinterpret_cast<const uint4*>(up)[i];
        uint4 out_raw;
        const T* g = reinterpret_cast<const T*>(&gate_raw);
        const T* u = reinterpret_cast<const T*>(&up_raw);
        T* o = reinterpret_cast<T*>(&out_raw);
#pragma unroll
        for (int j = 0; j < per_vector; ++j) store(o + j, gated(to_float(g[j]), to_float(u[j])));
        reinterpret_cast<uint4*>(out)[i] = out_raw;
    } else if (i - vectors < n % per_vector) {
        const long long tail = vectors * per_vector + (i - vectors);
        store(out + tail, gated(to_float(gate[tail]), to_float(up[tail])));
    }
}

// One element per thread, for pointers of any alignment.
// gate, up, out: [n]
template <typename T>
__global__ void swiglu_elements(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ out,
                                long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) store(out + i, gated(to_float(gate[i]), to_float(up[i])));
}

template <typename T>
void swiglu(const T* gate, const T* up, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    constexpr int per_vector = sizeof(uint4) / sizeof(T);
    const int block = 256;
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(gate) | reinterpret_cast<uintptr_t>(up) | reinterpret_cast<uintptr_t>(out);
    if (bits % sizeof(uint4) == 0) {
        const long long threads = n / per_vector + n % per_vector;
        swiglu_vectors<<<static_cast<unsigned>((threads + block - 1) / block), block, 0, stream>>>(gate, up, out, n);
    } else {
        swiglu_elements<<<static_cast<unsigned>((n + block - 1) / block), block, 0, stream>>>(gate, up, out, n);
    }
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
