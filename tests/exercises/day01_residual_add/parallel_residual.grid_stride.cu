// A correct parallel residual with a different design: a grid-stride loop with a fixed number of blocks. Each step
// makes one 16-byte access per tensor if the addresses allow it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

template <typename T>
struct alignas(16) Vector {
    T value[16 / sizeof(T)];
};

// x, attention, mlp, out: (n).
template <typename T>
__global__ void walk(const T* x, const T* attention, const T* mlp, T* out, long long n, bool aligned) {
    constexpr int kCount = 16 / sizeof(T);
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long me = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long vectors = aligned ? n / kCount : 0;
    for (long long i = me; i < vectors; i += step) {
        Vector<T> sum = reinterpret_cast<const Vector<T>*>(x)[i];
        const Vector<T> b = reinterpret_cast<const Vector<T>*>(attention)[i];
        const Vector<T> c = reinterpret_cast<const Vector<T>*>(mlp)[i];
        for (int j = 0; j < kCount; ++j) {
            sum.value[j] = T(float(sum.value[j]) + float(b.value[j]) + float(c.value[j]));
        }
        reinterpret_cast<Vector<T>*>(out)[i] = sum;
    }
    for (long long i = vectors * kCount + me; i < n; i += step) {
        out[i] = T(float(x[i]) + float(attention[i]) + float(mlp[i]));
    }
}

template <typename T>
void launch(const T* x, const T* attention, const T* mlp, T* out, long long n, cudaStream_t stream) {
    if (n <= 0) return;
    std::uintptr_t bits = 0;
    for (const void* pointer : {static_cast<const void*>(x), static_cast<const void*>(attention),
                                static_cast<const void*>(mlp), static_cast<const void*>(out)}) {
        bits |= reinterpret_cast<std::uintptr_t>(pointer);
    }
    const int blocks = n < 256LL * 1056 ? static_cast<int>((n + 255) / 256) : 1056;
    walk<<<blocks, 256, 0, stream>>>(x, attention, mlp, out, n, bits % 16 == 0);
}
