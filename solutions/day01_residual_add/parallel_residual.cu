// Parallel residual: out = x + attention + mlp, as GPT-NeoX adds both branches of a layer at once.
//
// Two calls of a residual add would read four tensors and write two: six trips. One pass reads three and writes one:
// four. The sum also stays in float until the end, so that a half-precision result is rounded once, not twice.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

constexpr int kThreads = 256;

// kWidth neighbours that one access moves: 16 bytes, or one element where the addresses do not allow more. Kept as whole
// words, so that eight half-precision numbers take four registers and not eight.
template <typename T, int kWidth>
struct Pack {
    std::conditional_t<kWidth == 1, T, uint4> bits;

    __device__ float get(int j) const { return static_cast<float>(reinterpret_cast<const T*>(&bits)[j]); }
    __device__ void set(int j, float value) { reinterpret_cast<T*>(&bits)[j] = static_cast<T>(value); }
};

// Each pointer: kWidth elements.
template <int kWidth, typename T>
__device__ void add(const T* x, const T* attention, const T* mlp, T* out) {
    using Access = Pack<T, kWidth>;
    const Access a = *reinterpret_cast<const Access*>(x);
    const Access b = *reinterpret_cast<const Access*>(attention);
    const Access c = *reinterpret_cast<const Access*>(mlp);
    Access sum;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum.set(j, a.get(j) + (b.get(j) + c.get(j)));
    *reinterpret_cast<Access*>(out) = sum;
}

// x, attention, mlp, out are (n). The head ends where 16-byte addresses begin; the tail is what no pack covers.
template <int kWidth, typename T>
__global__ void parallel_residual_kernel(const T* x, const T* attention, const T* mlp, T* out, long long n, int head) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long packs = (n - head) / kWidth;
    const long long tail = head + packs * kWidth;
    if (i < packs) {
        const long long first = head + i * kWidth;
        add<kWidth>(x + first, attention + first, mlp + first, out + first);
    }
    if (i < head) add<1>(x + i, attention + i, mlp + i, out + i);
    if (tail + i < n) add<1>(x + tail + i, attention + tail + i, mlp + tail + i, out + tail + i);
}

int bytes_past_16(const void* pointer) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(pointer) % 16); }

template <typename T>
void launch(const T* x, const T* attention, const T* mlp, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    constexpr int kWidth = 16 / sizeof(T);
    const int past = bytes_past_16(x);
    if (past == bytes_past_16(attention) && past == bytes_past_16(mlp) && past == bytes_past_16(out)) {
        const int to_boundary = (16 - past) % 16 / static_cast<int>(sizeof(T));
        const int head = n < to_boundary ? static_cast<int>(n) : to_boundary;
        const auto blocks = static_cast<unsigned>((n / kWidth + kThreads) / kThreads);
        parallel_residual_kernel<kWidth><<<blocks, kThreads, 0, stream>>>(x, attention, mlp, out, n, head);
    } else {
        const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
        parallel_residual_kernel<1><<<blocks, kThreads, 0, stream>>>(x, attention, mlp, out, n, 0);
    }
}

extern "C" void parallel_residual_f32(const float* x, const float* attention, const float* mlp, float* out, long long n,
                                      cudaStream_t stream) {
    launch(x, attention, mlp, out, n, stream);
}

extern "C" void parallel_residual_f16(const __half* x, const __half* attention, const __half* mlp, __half* out,
                                      long long n, cudaStream_t stream) {
    launch(x, attention, mlp, out, n, stream);
}

extern "C" void parallel_residual_bf16(const __nv_bfloat16* x, const __nv_bfloat16* attention, const __nv_bfloat16* mlp,
                                       __nv_bfloat16* out, long long n, cudaStream_t stream) {
    launch(x, attention, mlp, out, n, stream);
}
