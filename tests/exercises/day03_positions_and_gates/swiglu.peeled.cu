// Correct alternative: process single elements until out is aligned. If the other two arrays are then aligned too,
// process vectors, and single elements after the last vector.
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

__device__ float gated(float gate, float up) {
    const float e = expf(-fabsf(gate));  // at most 1, so nothing overflows for any sign of gate
    return gate * (gate >= 0.0f ? 1.0f : e) / (1.0f + e) * up;
}

// gate, up, out: [n]; the first `head` elements come before the first whole vector
template <typename T>
__global__ void swiglu_peeled(const T* gate, const T* up, T* out, long long n, long long head) {
    constexpr long long per_vector = 16 / sizeof(T);
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long vectors = (n - head) / per_vector;
    if (thread < vectors) {
        const long long at = head + thread * per_vector;
        const uint4 a = *reinterpret_cast<const uint4*>(gate + at);
        const uint4 b = *reinterpret_cast<const uint4*>(up + at);
        uint4 c;
        for (int j = 0; j < per_vector; ++j) {
            store(reinterpret_cast<T*>(&c) + j,
                  gated(to_float(reinterpret_cast<const T*>(&a)[j]), to_float(reinterpret_cast<const T*>(&b)[j])));
        }
        *reinterpret_cast<uint4*>(out + at) = c;
        return;
    }
    const long long single = thread - vectors;  // index among the elements outside the vectors
    const long long at = single < head ? single : single + vectors * per_vector;
    if (at < n) store(out + at, gated(to_float(gate[at]), to_float(up[at])));
}

template <typename T>
void swiglu(const T* gate, const T* up, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    const uintptr_t g = reinterpret_cast<uintptr_t>(gate), u = reinterpret_cast<uintptr_t>(up);
    const uintptr_t o = reinterpret_cast<uintptr_t>(out);
    long long head = static_cast<long long>((16 - o % 16) % 16 / sizeof(T));
    if (g % 16 != o % 16 || u % 16 != o % 16 || head > n) head = n;  // no offset aligns all arrays
    const long long vectors = (n - head) / (16 / sizeof(T));
    const long long threads = vectors + (n - vectors * static_cast<long long>(16 / sizeof(T)));
    swiglu_peeled<<<static_cast<unsigned>((threads + 127) / 128), 128, 0, stream>>>(gate, up, out, n, head);
}

// gate, up, out: [n]
