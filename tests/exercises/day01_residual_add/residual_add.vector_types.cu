// A correct residual add with a different design: CUDA's own vector types and the packed additions of half and
// bfloat16, two vectors per thread, and a scalar kernel wherever an address is not a multiple of 16 bytes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

__device__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

template <typename Pair>
__device__ uint4 add_pairs(uint4 a, uint4 b) {
    uint4 sum;
    const Pair* x = reinterpret_cast<const Pair*>(&a);
    const Pair* y = reinterpret_cast<const Pair*>(&b);
    Pair* z = reinterpret_cast<Pair*>(&sum);
    for (int j = 0; j < 4; ++j) z[j] = __hadd2(x[j], y[j]);
    return sum;
}

// Each pointer has shape (vectors). A vector has 16 bytes.
__global__ void add_vectors_f32(const float4* x, const float4* residual, float4* out, long long vectors) {
    const long long first = 2LL * blockIdx.x * blockDim.x + threadIdx.x;
    for (int turn = 0; turn < 2; ++turn) {
        const long long i = first + turn * blockDim.x;
        if (i < vectors) out[i] = add(x[i], residual[i]);
    }
}

template <typename Pair>
__global__ void add_vectors_pairs(const uint4* x, const uint4* residual, uint4* out, long long vectors) {
    const long long first = 2LL * blockIdx.x * blockDim.x + threadIdx.x;
    for (int turn = 0; turn < 2; ++turn) {
        const long long i = first + turn * blockDim.x;
        if (i < vectors) out[i] = add_pairs<Pair>(x[i], residual[i]);
    }
}

template <typename T>
__global__ void add_scalars(const T* x, const T* residual, T* out, long long first, long long n) {
    const long long i = first + static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = T(float(x[i]) + float(residual[i]));
}

bool all_aligned(const void* x, const void* residual, const void* out) {
    return (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(residual) |
            reinterpret_cast<std::uintptr_t>(out)) %
               16 ==
           0;
}

unsigned blocks_for(long long threads) { return static_cast<unsigned>((threads + 127) / 128); }

template <typename T>
void launch_rest(const T* x, const T* residual, T* out, long long first, long long n, cudaStream_t stream) {
    if (first < n) add_scalars<<<blocks_for(n - first), 128, 0, stream>>>(x, residual, out, first, n);
}

template <typename Pair, typename T>
void launch_pairs(const T* x, const T* residual, T* out, long long n, cudaStream_t stream) {
    const long long vectors = all_aligned(x, residual, out) ? n / 8 : 0;
    if (vectors > 0) {
        add_vectors_pairs<Pair><<<blocks_for((vectors + 1) / 2), 128, 0, stream>>>(
            reinterpret_cast<const uint4*>(x), reinterpret_cast<const uint4*>(residual), reinterpret_cast<uint4*>(out),
            vectors);
    }
    launch_rest(x, residual, out, vectors * 8, n, stream);
}

extern "C" void residual_add_f32(const float* x, const float* residual, float* out, long long n, cudaStream_t stream) {
    const long long vectors = all_aligned(x, residual, out) ? n / 4 : 0;
    if (vectors > 0) {
        add_vectors_f32<<<blocks_for((vectors + 1) / 2), 128, 0, stream>>>(reinterpret_cast<const float4*>(x),
                                                                           reinterpret_cast<const float4*>(residual),
                                                                           reinterpret_cast<float4*>(out), vectors);
    }
    launch_rest(x, residual, out, vectors * 4, n, stream);
}

extern "C" void residual_add_f16(const __half* x, const __half* residual, __half* out, long long n,
                                 cudaStream_t stream) {
    launch_pairs<__half2>(x, residual, out, n, stream);
}

extern "C" void residual_add_bf16(const __nv_bfloat16* x, const __nv_bfloat16* residual, __nv_bfloat16* out,
                                  long long n, cudaStream_t stream) {
    launch_pairs<__nv_bfloat162>(x, residual, out, n, stream);
}
