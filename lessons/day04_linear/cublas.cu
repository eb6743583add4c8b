// A linear layer by cuBLAS and by cuBLASLt, beside the course's kernels, as a complete program. With three numbers (rows,
// input features, output features) it also measures times:
//
//   cd lessons/day04_linear; S=../../solutions/day04_linear
//   grader run -I .. cublas.cu $S/linear_wmma.cu $S/linear_register_tiled.cu
//   nvcc -O3 -std=c++17 -arch=native -I .. cublas.cu $S/linear_wmma.cu $S/linear_register_tiled.cu -lcublas -lcublasLt
//   ./a.out 4096 4096 4096
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <type_traits>
#include <vector>

#include "llmk/vector.cuh"

#define CHECK(call)                                                       \
    do {                                                                  \
        const int status = static_cast<int>(call);                        \
        if (status != 0) {                                                \
            printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, status); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

// The course's kernels
extern "C" void linear_wmma_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                int in_features, int out_features, cudaStream_t stream);
extern "C" void linear_register_tiled(const float* x, const float* weight, const float* bias, float* out, int rows,
                                      int in_features, int out_features, cudaStream_t stream);

template <typename T>
constexpr cudaDataType kType = std::is_same<T, float>::value ? CUDA_R_32F : CUDA_R_16F;

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
template <typename T>
struct Layer {
    int rows, in_features, out_features;
    T *x, *weight, *bias, *out;
};

// out = x weight^T. A row-major matrix is its transpose in column-major order, so cuBLAS computes out^T = weight x^T:
// A = weight is [in_features, out_features] for cuBLAS and needs CUBLAS_OP_T, B = x is [in_features, rows], and
// C = out is [out_features, rows]. The leading dimension of each is its number of columns when row-major.
// Scale is the type of alpha and beta, which the compute type determines.
template <typename Scale, typename T>
void gemm(cublasHandle_t cublas, const Layer<T>& layer, cublasComputeType_t compute) {
    const Scale one = 1.0f, zero = 0.0f;
    CHECK(cublasGemmEx(cublas, CUBLAS_OP_T, CUBLAS_OP_N, layer.out_features, layer.rows, layer.in_features, &one,
                       layer.weight, kType<T>, layer.in_features, layer.x, kType<T>, layer.in_features, &zero,
                       layer.out, kType<T>, layer.out_features, compute, CUBLAS_GEMM_DEFAULT));
}

// out: [rows, columns], columns a multiple of the vector width   bias: [columns]
template <typename T>
__global__ void add_bias(T* out, const T* bias, int columns) {
    constexpr int kWidth = llmk::kVectorWidth<T>;
    const int column = (blockIdx.x * blockDim.x + threadIdx.x) * kWidth;
    if (column >= columns) return;
    T* place = out + static_cast<long long>(blockIdx.y) * columns + column;
    llmk::Vector<T> sum = llmk::load_vector<kWidth>(place);
    const llmk::Vector<T> added = llmk::load_vector<kWidth>(bias + column);
    for (int j = 0; j < kWidth; ++j) sum.set(j, sum.get(j) + added.get(j));
    llmk::store_vector<kWidth>(place, sum);
}

template <typename T>
void bias_pass(const Layer<T>& layer, cudaStream_t stream) {
    const int vectors = layer.out_features / llmk::kVectorWidth<T>;
    add_bias<<<dim3((vectors + 255) / 256, layer.rows), 256, 0, stream>>>(layer.out, layer.bias, layer.out_features);
    CHECK(cudaGetLastError());
}

// A matmul by cuBLASLt with the bias in its epilogue: the descriptors, and the algorithm that the heuristic chose. They
// depend on shapes and types only, so create them once and call run often.
template <typename T>
struct Plan {
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t weight, x, out;
    cublasLtMatmulHeuristicResult_t chosen;
    void* workspace;

    Plan(cublasLtHandle_t lt, const Layer<T>& layer, size_t most_workspace) {
        const cublasOperation_t transposed = CUBLAS_OP_T;
        const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        CHECK(cublasLtMatmulDescCreate(&how, CUBLAS_COMPUTE_32F, CUDA_R_32F));
        CHECK(cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
        CHECK(cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
        CHECK(cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &layer.bias, sizeof layer.bias));
        CHECK(cublasLtMatrixLayoutCreate(&weight, kType<T>, layer.in_features, layer.out_features, layer.in_features));
        CHECK(cublasLtMatrixLayoutCreate(&x, kType<T>, layer.in_features, layer.rows, layer.in_features));
        CHECK(cublasLtMatrixLayoutCreate(&out, kType<T>, layer.out_features, layer.rows, layer.out_features));
        cublasLtMatmulPreference_t preference;
        CHECK(cublasLtMatmulPreferenceCreate(&preference));
        CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &most_workspace, sizeof most_workspace));
        int found = 0;
        CHECK(cublasLtMatmulAlgoGetHeuristic(lt, how, weight, x, out, out, preference, 1, &chosen, &found));
        CHECK(found == 1 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
        CHECK(cublasLtMatmulPreferenceDestroy(preference));
        CHECK(cudaMalloc(&workspace, std::max<size_t>(chosen.workspaceSize, 1)));
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() {
        CHECK(cublasLtMatrixLayoutDestroy(weight));
        CHECK(cublasLtMatrixLayoutDestroy(x));
        CHECK(cublasLtMatrixLayoutDestroy(out));
        CHECK(cublasLtMatmulDescDestroy(how));
        CHECK(cudaFree(workspace));
    }

    void run(cublasLtHandle_t lt, const Layer<T>& layer, cudaStream_t stream) const {
        const float one = 1.0f, zero = 0.0f;
        CHECK(cublasLtMatmul(lt, how, &one, layer.weight, weight, layer.x, x, &zero, layer.out, out, layer.out, out,
                             &chosen.algo, workspace, chosen.workspaceSize, stream));
    }
};

// Device memory with n numbers between -1 and 1, which are also in `values`.
template <typename T>
T* drawn(size_t n, std::vector<T>& values, unsigned seed) {
    values.resize(n);
    for (T& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<T>(static_cast<float>(seed >> 8) / (1 << 23) - 1.0f);
    }
    T* device;
    CHECK(cudaMalloc(&device, n * sizeof(T)));
    CHECK(cudaMemcpy(device, values.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

struct Way {
    const char* name;
    bool biased;
    std::function<void()> run;
};

// Run all ways to compute a layer: print the error of each, and with `timed` also its median time, measured in turns with
// a cold L2 cache.
template <typename T>
void compare(Layer<T> layer, const std::function<std::vector<Way>(const Layer<T>&)>& ways_of, bool timed,
             cudaStream_t stream) {
    std::vector<T> x, weight, bias;
    const size_t inner = layer.in_features, columns = layer.out_features, outputs = layer.rows * columns;
    layer.x = drawn(layer.rows * inner, x, 1);
    layer.weight = drawn(columns * inner, weight, 2);
    layer.bias = drawn(columns, bias, 3);
    CHECK(cudaMalloc(&layer.out, outputs * sizeof(T)));
    const std::vector<Way> ways = ways_of(layer);
    std::vector<std::vector<float>> times(ways.size());
    if (timed) {
        const size_t flushed = 256 << 20;  // more than the L2 cache
        void* flush;
        cudaEvent_t start, end;
        CHECK(cudaMalloc(&flush, flushed));
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&end));
        for (int round = 0; round < 35; ++round) {
            for (size_t i = 0; i < ways.size(); ++i) {
                CHECK(cudaMemsetAsync(flush, round, flushed, stream));
                CHECK(cudaEventRecord(start, stream));
                ways[i].run();
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
    }
    for (size_t i = 0; i < ways.size(); ++i) {
        std::vector<T> out(outputs);
        CHECK(cudaMemset(layer.out, 0xff, outputs * sizeof(T)));  // NaN
        ways[i].run();
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(out.data(), layer.out, outputs * sizeof(T), cudaMemcpyDeviceToHost));
        double wrong = 0, size = 0;
        for (size_t sample = 0; sample < 512; ++sample) {
            const size_t at = sample * 7919 % outputs, row = at / columns, column = at % columns;
            double sum = ways[i].biased ? static_cast<double>(static_cast<float>(bias[column])) : 0.0;
            for (size_t k = 0; k < inner; ++k)
                sum += static_cast<double>(static_cast<float>(x[row * inner + k])) *
                       static_cast<double>(static_cast<float>(weight[column * inner + k]));
            wrong += std::pow(static_cast<double>(static_cast<float>(out[at])) - sum, 2);
            size += sum * sum;
        }
        printf("%-46s error %.1e", ways[i].name, std::sqrt(wrong / size));
        if (timed) {
            std::nth_element(times[i].begin(), times[i].begin() + times[i].size() / 2, times[i].end());
            printf(" %10.1f us", static_cast<double>(times[i][times[i].size() / 2]));
        }
        printf("\n");
    }
    CHECK(cudaFree(layer.x));
    CHECK(cudaFree(layer.weight));
    CHECK(cudaFree(layer.bias));
    CHECK(cudaFree(layer.out));
}

int main(int argc, char** argv) {
    const bool timed = argc == 4;
    const int rows = timed ? atoi(argv[1]) : 24, inner = timed ? atoi(argv[2]) : 64,
              columns = timed ? atoi(argv[3]) : 40;
    if (rows < 1 || inner < 1 || columns < 1 || inner % 8 || columns % 8 || rows > 65535) {
        printf("rows must be 1 to 65535, and the numbers of features multiples of 8\n");
        return 1;
    }
    cudaStream_t stream;
    cublasHandle_t cublas;
    cublasLtHandle_t lt;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cublasCreate(&cublas));
    CHECK(cublasSetStream(cublas, stream));
    CHECK(cublasLtCreate(&lt));
    {
        Plan<__half>* plan = nullptr;
        compare<__half>(
            {rows, inner, columns},
            [&](const Layer<__half>& layer) {
                plan = new Plan<__half>(lt, layer, 32 << 20);
                return std::vector<Way>{
                    {"f16: GemmEx, sums in f32, no bias", false,
                     [=] { gemm<float>(cublas, layer, CUBLAS_COMPUTE_32F); }},
                    {"f16: GemmEx, sums in f16, no bias", false,
                     [=] { gemm<__half>(cublas, layer, CUBLAS_COMPUTE_16F); }},
                    {"f16: GemmEx, sums in f32, then a bias pass", true,
                     [=] {
                         gemm<float>(cublas, layer, CUBLAS_COMPUTE_32F);
                         bias_pass(layer, stream);
                     }},
                    {"f16: cublasLtMatmul, bias in the epilogue", true, [=] { plan->run(lt, layer, stream); }},
                    {"f16: linear_wmma, with bias", true,
                     [=] {
                         linear_wmma_f16(layer.x, layer.weight, layer.bias, layer.out, layer.rows, layer.in_features,
                                         layer.out_features, stream);
                     }},
                };
            },
            timed, stream);
        delete plan;
    }
    compare<float>(
        {rows, inner, columns},
        [&](const Layer<float>& layer) {
            return std::vector<Way>{
                {"f32: GemmEx, no bias", false, [=] { gemm<float>(cublas, layer, CUBLAS_COMPUTE_32F); }},
                {"f32: GemmEx, inputs rounded to tf32, no bias", false,
                 [=] { gemm<float>(cublas, layer, CUBLAS_COMPUTE_32F_FAST_TF32); }},
                {"f32: linear_register_tiled, with bias", true,
                 [=] {
                     linear_register_tiled(layer.x, layer.weight, layer.bias, layer.out, layer.rows, layer.in_features,
                                           layer.out_features, stream);
                 }},
            };
        },
        timed, stream);
    CHECK(cublasLtDestroy(lt));
    CHECK(cublasDestroy(cublas));
    CHECK(cudaStreamDestroy(stream));
}
