// Launches a kernel with arguments that suites.py knows nothing about: an array for a pointer, a given number for the rest.
// A class is zero or, on request, filled with pointers to arrays.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace launcher {

constexpr size_t kArrayBytes = size_t(4) << 20;
constexpr size_t kPointers = 64;  // in an array of pointers
constexpr unsigned kMaxThreads = 1024;

// The program's arguments: a number, and the words "index" (arrays are 0, 1, 2, ... instead of zeros) and "pointers" (of
// classes).
struct Words {
    long number = 0;
    bool index = false, pointers = false;

    Words(int count, char** words) {
        if (count > 1) number = std::atol(words[1]);
        for (int i = 2; i < count; ++i) {
            index |= std::strcmp(words[i], "index") == 0;
            pointers |= std::strcmp(words[i], "pointers") == 0;
        }
    }
};

template <class T>
T* array(bool index, size_t bytes) {
    std::vector<char> content(bytes);
    if constexpr (std::is_pointer_v<T>) {
        std::vector<T> rows(kPointers);
        for (T& row : rows) row = (T)array<std::remove_cv_t<std::remove_pointer_t<T>>>(index, bytes / kPointers);
        std::memcpy(content.data(), rows.data(), kPointers * sizeof(T));
    } else if (index) {
        using Number = std::conditional_t<std::is_arithmetic_v<T>, T, unsigned>;
        for (size_t i = 0; i < bytes / sizeof(Number); ++i) reinterpret_cast<Number*>(content.data())[i] = Number(i);
    }
    void* copy = nullptr;
    if (cudaMalloc(&copy, bytes) != cudaSuccess) std::exit(3);
    cudaMemcpy(copy, content.data(), bytes, cudaMemcpyHostToDevice);
    return static_cast<T*>(copy);
}

template <class T>
struct Argument {
    alignas(T) char bytes[sizeof(T)] = {};

    explicit Argument(Words words) {
        if constexpr (std::is_pointer_v<T>) {
            using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
            if constexpr (std::is_function_v<Element>)
                return;
            else if constexpr (std::is_void_v<Element>)
                put((T)array<unsigned>(words.index, kArrayBytes));
            else
                put((T)array<Element>(words.index, kArrayBytes));
        } else if constexpr (std::is_arithmetic_v<T>) {
            put(T(words.number));
        } else if (words.pointers) {
            for (size_t i = 0; i + sizeof(void*) <= sizeof(T); i += sizeof(void*)) {
                void* pointer = array<unsigned>(words.index, kArrayBytes);
                std::memcpy(bytes + i, &pointer, sizeof(void*));
            }
        }
    }
    void put(T value) { std::memcpy(bytes, &value, sizeof(T)); }
};

// Returns the dimensions with at most kMaxThreads threads: the largest one is halved until they fit.
inline dim3 fitting(dim3 block) {
    while (size_t(block.x) * block.y * block.z > kMaxThreads) {
        unsigned& largest = block.x >= block.y && block.x >= block.z ? block.x : block.y >= block.z ? block.y : block.z;
        largest = (largest + 1) / 2;
    }
    return block;
}

template <class... Parameters>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, Words words, size_t shared, bool cooperative) {
    void* arguments[] = {nullptr, (new Argument<Parameters>(words))->bytes...};
    block = fitting(block);
    cudaError_t started = cooperative
                              ? cudaLaunchCooperativeKernel(kernel, grid, block, arguments + 1, shared, cudaStream_t(0))
                              : cudaLaunchKernel(kernel, grid, block, arguments + 1, shared, cudaStream_t(0));
    if (started != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
        std::printf("the launch failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        std::exit(3);
    }
}

}  // namespace launcher
