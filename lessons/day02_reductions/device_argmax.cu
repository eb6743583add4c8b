// The largest of n floats by cub::DeviceReduce and by the course's kernel, as a complete program. With a number it draws
// that many floats and measures times:
//
//   cd lessons/day02_reductions; S=../../solutions/day02_reductions
//   grader run -I .. device_argmax.cu $S/vocabulary_argmax.cu
//   nvcc -O3 -std=c++17 -arch=native -I .. device_argmax.cu $S/vocabulary_argmax.cu && ./a.out 151936
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cub/device/device_reduce.cuh>
#include <functional>
#include <vector>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        const cudaError_t error = (call);                                                    \
        if (error != cudaSuccess) {                                                          \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

// The course's kernel
extern "C" void vocabulary_argmax_f32(const float* x, int* out, unsigned long long* partial, int rows, int cols,
                                      int splits, cudaStream_t stream);

// The first call gets no workspace and only returns its size; the second call computes. With a workspace that is kept,
// the second call can be repeated for other inputs of at most n elements.
struct DeviceArgmax {
    void* workspace = nullptr;
    size_t bytes = 0;

    DeviceArgmax(const float* x, float* value, long long* index, int n) {
        CHECK(cub::DeviceReduce::ArgMax(workspace, bytes, x, value, index, n));
        CHECK(cudaMalloc(&workspace, bytes));
    }
    DeviceArgmax(const DeviceArgmax&) = delete;
    DeviceArgmax& operator=(const DeviceArgmax&) = delete;
    ~DeviceArgmax() { CHECK(cudaFree(workspace)); }

    void run(const float* x, float* value, long long* index, int n, cudaStream_t stream) {
        CHECK(cub::DeviceReduce::ArgMax(workspace, bytes, x, value, index, n, stream));
    }
};

// Return the median time of each function in microseconds, measured in turns with a cold L2 cache.
std::vector<float> timed(const std::vector<std::function<void()>>& functions, cudaStream_t stream) {
    const size_t flushed = 256 << 20;  // more than the L2 cache
    void* flush;
    cudaEvent_t start, end;
    CHECK(cudaMalloc(&flush, flushed));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    std::vector<std::vector<float>> times(functions.size());
    for (int round = 0; round < 55; ++round) {
        for (size_t i = 0; i < functions.size(); ++i) {
            CHECK(cudaMemsetAsync(flush, round, flushed, stream));
            CHECK(cudaEventRecord(start, stream));
            functions[i]();
            CHECK(cudaEventRecord(end, stream));
            CHECK(cudaEventSynchronize(end));
            float ms;
            CHECK(cudaEventElapsedTime(&ms, start, end));
            if (round >= 5) times[i].push_back(ms * 1e3f);  // the first rounds warm up
        }
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaFree(flush));
    std::vector<float> medians;
    for (std::vector<float>& all : times) {
        std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
        medians.push_back(all[all.size() / 2]);
    }
    return medians;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1000;
    if (n < 1) {
        printf("the number of floats must be at least 1\n");
        return 1;
    }
    std::vector<float> values(n);
    unsigned seed = 1;
    for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
    }
    values[n / 3] = values[n / 2] = 1.0f;  // two equal maxima
    int multiprocessors;
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    const int splits = std::max(1, std::min(8 * multiprocessors, n / 1024));
    float *x, *value;
    long long* index;
    int* column;
    unsigned long long* partial;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMalloc(&value, sizeof(float)));
    CHECK(cudaMalloc(&index, sizeof(long long)));
    CHECK(cudaMalloc(&column, sizeof(int)));
    CHECK(cudaMalloc(&partial, splits * sizeof(unsigned long long)));
    CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    {
        DeviceArgmax argmax(x, value, index, n);
        const std::vector<std::function<void()>> ways = {
            [&] { argmax.run(x, value, index, n, stream); },
            [&] { vocabulary_argmax_f32(x, column, partial, 1, n, splits, stream); },
        };
        for (const std::function<void()>& way : ways) way();
        CHECK(cudaStreamSynchronize(stream));
        float largest;
        long long of_cub;
        int of_course;
        CHECK(cudaMemcpy(&largest, value, sizeof largest, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(&of_cub, index, sizeof of_cub, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(&of_course, column, sizeof of_course, cudaMemcpyDeviceToHost));
        printf("of %d floats, two equal ones at %d and %d are the largest\n", n, n / 3, n / 2);
        printf("cub::DeviceReduce::ArgMax: %g at %lld\n", static_cast<double>(largest), of_cub);
        printf("vocabulary_argmax:         at %d\n", of_course);
        if (argc > 1) {
            const std::vector<float> medians = timed(ways, stream);
            printf("workspace of CUB: %zu bytes\n", argmax.bytes);
            printf("cub::DeviceReduce::ArgMax %10.1f us\n", static_cast<double>(medians[0]));
            printf("vocabulary_argmax         %10.1f us\n", static_cast<double>(medians[1]));
        }
    }
    CHECK(cudaFree(x));
    CHECK(cudaFree(value));
    CHECK(cudaFree(index));
    CHECK(cudaFree(column));
    CHECK(cudaFree(partial));
    CHECK(cudaStreamDestroy(stream));
}
