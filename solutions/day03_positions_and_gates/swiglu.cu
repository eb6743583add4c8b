// SwiGLU gate: out[i] = silu(gate[i]) * up[i].
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

// For x below -88, expf(-x) is infinity and the quotient is 0, which is the right limit. No special case is needed.
__device__ float gated(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

// Each thread takes 16 bytes of each array; the last block also takes the elements after the last whole vector.
// gate, up, out: [n], multiples of 16 bytes
template <typename T>
__global__ void swiglu_vectors(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ out, long long n) {
    constexpr int per_vector = llmk::kVectorWidth<T>;
    const long long vectors = n / per_vector;
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < vectors) {
        const auto g = llmk::load_vector<per_vector>(gate + i * per_vector);
        const auto u = llmk::load_vector<per_vector>(up + i * per_vector);
        llmk::Vector<T> o;
#pragma unroll
        for (int j = 0; j < per_vector; ++j) o.set(j, gated(g.get(j), u.get(j)));
        llmk::store_vector(out + i * per_vector, o);
    } else if (i - vectors < n % per_vector) {
        const long long tail = vectors * per_vector + (i - vectors);
        out[tail] = static_cast<T>(gated(static_cast<float>(gate[tail]), static_cast<float>(up[tail])));
    }
}

// One element per thread, for pointers of any alignment.
// gate, up, out: [n]
template <typename T>
__global__ void swiglu_elements(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ out,
                                long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = static_cast<T>(gated(static_cast<float>(gate[i]), static_cast<float>(up[i])));
}

template <typename T>
void swiglu(const T* gate, const T* up, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    constexpr int per_vector = llmk::kVectorWidth<T>;
    const int block = 256;
    if (llmk::rows_are_aligned(0, gate, up, out)) {
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
