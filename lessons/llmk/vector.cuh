// Vectorized access: one load or store moves several neighboring elements, at most 16 bytes. Day 1 derives it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace llmk {

// Elements of T in 16 bytes, the widest access of a thread.
template <typename T>
constexpr int kVectorWidth = 16 / static_cast<int>(sizeof(T));

// kWidth neighboring elements that one access moves: 16 bytes, or one element if the addresses are not aligned. They
// are stored as 32-bit words, so that eight half-precision numbers take four registers and not eight.
template <typename T, int kWidth = kVectorWidth<T>>
struct Vector {
    std::conditional_t<kWidth == 1, T, uint4> bits;

    __device__ float get(int j) const { return static_cast<float>(reinterpret_cast<const T*>(&bits)[j]); }
    __device__ void set(int j, float value) { reinterpret_cast<T*>(&bits)[j] = static_cast<T>(value); }
};

// Load the kWidth elements at `from`, which is aligned to their size.
template <int kWidth, typename T>
__device__ __forceinline__ Vector<T, kWidth> load_vector(const T* from) {
    return *reinterpret_cast<const Vector<T, kWidth>*>(from);
}

template <int kWidth, typename T>
__device__ __forceinline__ void store_vector(T* to, const Vector<T, kWidth>& vector) {
    *reinterpret_cast<Vector<T, kWidth>*>(to) = vector;
}

// Round kCount floats to T and store them at `to`, which is column `column` of a row of `columns` elements. If
// `aligned`, one access stores them all; otherwise each element inside the row is stored by itself.
template <typename T, int kCount>
__device__ __forceinline__ void store_rounded(T* to, const float (&values)[kCount], bool aligned, int column,
                                              int columns) {
    std::conditional_t<kCount * sizeof(T) == 16, uint4, uint2> bits;
    static_assert(sizeof(bits) == kCount * sizeof(T), "8 or 16 bytes");
    T* rounded = reinterpret_cast<T*>(&bits);
#pragma unroll
    for (int j = 0; j < kCount; ++j) rounded[j] = static_cast<T>(values[j]);
    if (aligned) {
        *reinterpret_cast<decltype(bits)*>(to) = bits;
    } else {
#pragma unroll
        for (int j = 0; j < kCount; ++j) {
            if (column + j < columns) to[j] = rounded[j];
        }
    }
}

// Return the distance in bytes from the last multiple of 16 to `pointer`.
inline int bytes_past_16(const void* pointer) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(pointer) % 16);
}

// Return whether all rows start at multiples of 16 bytes: all these addresses and the size of a row of `row_elements`
// elements are multiples of 16. Pass 0 as `row_elements` where the length of a row does not matter.
template <typename T, typename... Pointers>
bool rows_are_aligned(long long row_elements, const T* first, Pointers... others) {
    const bool aligned = bytes_past_16(first) == 0 && row_elements * static_cast<long long>(sizeof(T)) % 16 == 0;
    return aligned && (... && (bytes_past_16(others) == 0));
}

}  // namespace llmk
