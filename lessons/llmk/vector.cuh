// Vectorized access: one load or store moves several neighbors of a row, at most 16 bytes. Day 1 derives it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace llmk {

// Elements of T in 16 bytes, the widest access that the hardware has.
template <typename T>
constexpr int kVectorWidth = 16 / static_cast<int>(sizeof(T));

// kWidth neighbors that one access moves: 16 bytes, or one element where the addresses do not allow more. Kept as whole
// words, so that eight half-precision numbers take four registers and not eight.
template <typename T, int kWidth = kVectorWidth<T>>
struct Vector {
    std::conditional_t<kWidth == 1, T, uint4> bits;

    __device__ float get(int j) const { return static_cast<float>(reinterpret_cast<const T*>(&bits)[j]); }
    __device__ void set(int j, float value) { reinterpret_cast<T*>(&bits)[j] = static_cast<T>(value); }
};

// The kWidth elements that begin at `from`, whose address is a multiple of their bytes.
template <int kWidth, typename T>
__device__ __forceinline__ Vector<T, kWidth> load_vector(const T* from) {
    return *reinterpret_cast<const Vector<T, kWidth>*>(from);
}

template <int kWidth, typename T>
__device__ __forceinline__ void store_vector(T* to, const Vector<T, kWidth>& vector) {
    *reinterpret_cast<Vector<T, kWidth>*>(to) = vector;
}

// Rounds kCount floats to T and writes them to a row of `columns` elements, whose column `column` is at `to`: in one access
// where `aligned`, else one by one, as far as the row goes.
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

// How far an address is behind the last multiple of 16.
inline int bytes_past_16(const void* pointer) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(pointer) % 16);
}

// Whether all these addresses, and the bytes of a row of `row_elements` elements, are multiples of 16: then every row starts
// at such an address. `row_elements` is 0 where the length of the rows is no question.
template <typename T, typename... Pointers>
bool rows_are_aligned(long long row_elements, const T* first, Pointers... others) {
    const bool aligned = bytes_past_16(first) == 0 && row_elements * static_cast<long long>(sizeof(T)) % 16 == 0;
    return aligned && (... && (bytes_past_16(others) == 0));
}

}  // namespace llmk
