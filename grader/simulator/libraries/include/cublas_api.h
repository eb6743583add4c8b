// cuBLAS on the host, for whole programs: real matrices and vectors in column-major order. Sums are accumulated in
// double precision and rounded once, so results are at least as accurate as a GPU's. A compute type that rounds the
// inputs, such as CUBLAS_COMPUTE_32F_FAST_TF32, rounds them here, too. Implemented in libraries/runtime/blas.cpp.
#pragma once
#define CUBLAS_API_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime_api.h"
#include "library_types.h"

#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VERSION 130000

enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cublasMath_t {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3
};
enum cublasComputeType_t {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
typedef struct cublasContext* cublasHandle_t;

#pragma GCC visibility push(default)
namespace sim {
namespace blas {

// A matrix in device memory; the matrices of a batch are `stride` elements apart.
struct Matrix {
    const void* data;
    cudaDataType type;
    long long ld, stride;
    cublasOperation_t operation;
};
// The type to which multiply rounds the elements of a and b before it multiplies them.
enum class Rounding { none, tf32, f16, bf16 };
enum class Activation { none, relu, gelu };
// d = activation(alpha * a * b + beta * c + bias), where a is m x k and b is k x n after transposition. `bias` has a value
// for each row of d; null means none. `typed`: return CUBLAS_STATUS_NOT_SUPPORTED for types that cuBLAS does not combine.
struct Product {
    long long m, n, k;
    const void* alpha;
    Matrix a, b;
    const void* beta;
    Matrix c, d;
    int batches;
    cudaDataType scalars;
    bool typed = false;
    Rounding rounding = Rounding::none;
    const void* bias = nullptr;
    cudaDataType bias_type = CUDA_R_32F;
    Activation activation = Activation::none;
};
cublasStatus_t perform(const char* call, cublasHandle_t handle, const Product& product);
// The same for cuBLASLt, which passes the stream and the pointer mode with each call.
cublasStatus_t perform_in(const char* call, cublasHandle_t handle, const Product& product, cudaStream_t stream,
                          cublasPointerMode_t mode);
// c = alpha * a + beta * b
cublasStatus_t add(const char* call, cublasHandle_t handle, long long m, long long n, const void* alpha, Matrix a,
                   const void* beta, Matrix b, Matrix c, cudaDataType scalars);
enum class Vectors { axpy, scale, copy, swap, dot, norm, sum_of_sizes, largest };
cublasStatus_t vectors(const char* call, Vectors what, cublasHandle_t handle, long long n, const void* alpha,
                       const void* x, long long x_step, void* y, long long y_step, void* result, cudaDataType type);

}  // namespace blas
}  // namespace sim

extern "C" {
cublasStatus_t cublasCreate(cublasHandle_t* handle) SIM_SYMBOL(cublasCreate);
cublasStatus_t cublasDestroy(cublasHandle_t handle) SIM_SYMBOL(cublasDestroy);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) SIM_SYMBOL(cublasSetStream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) SIM_SYMBOL(cublasGetStream);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) SIM_SYMBOL(cublasSetPointerMode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) SIM_SYMBOL(cublasGetPointerMode);
const char* cublasGetStatusString(cublasStatus_t status) SIM_SYMBOL(cublasGetStatusString);
const char* cublasGetStatusName(cublasStatus_t status) SIM_SYMBOL(cublasGetStatusName);
}
#pragma GCC visibility pop

inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

#define SIM_BLAS __attribute__((always_inline)) inline cublasStatus_t

namespace sim {
namespace blas {
// c = alpha * a * b + beta * c
SIM_BLAS multiply(const char* call, cublasHandle_t handle, long long m, long long n, long long k, const void* alpha,
                  Matrix a, Matrix b, const void* beta, Matrix c, int batches, cudaDataType scalars, bool typed = false,
                  Rounding rounding = Rounding::none) {
    return perform(call, handle, {m, n, k, alpha, a, b, beta, c, c, batches, scalars, typed, rounding});
}
}  // namespace blas
}  // namespace sim

#define SIM_BLAS_TYPE(LETTER, T, TYPE)                                                                                 \
    SIM_BLAS cublas##LETTER##gemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, \
                                                int m, int n, int k, const T* alpha, const T* a, int lda,              \
                                                long long stride_a, const T* b, int ldb, long long stride_b,           \
                                                const T* beta, T* c, int ldc, long long stride_c, int batches) {       \
        return ::sim::blas::multiply("cublas" #LETTER "gemmStridedBatched", handle, m, n, k, alpha,                    \
                                     {a, TYPE, lda, stride_a, of_a}, {b, TYPE, ldb, stride_b, of_b}, beta,             \
                                     {c, TYPE, ldc, stride_c, CUBLAS_OP_N}, batches, TYPE);                            \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##gemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, \
                                  int k, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,      \
                                  T* c, int ldc) {                                                                     \
        return ::sim::blas::multiply("cublas" #LETTER "gemm", handle, m, n, k, alpha, {a, TYPE, lda, 0, of_a},         \
                                     {b, TYPE, ldb, 0, of_b}, beta, {c, TYPE, ldc, 0, CUBLAS_OP_N}, 1, TYPE);          \
    }
// A vector is a matrix of one row whose leading dimension is the vector's increment.
#define SIM_BLAS_REAL(LETTER, T, TYPE)                                                                                 \
    SIM_BLAS_TYPE(LETTER, T, TYPE)                                                                                     \
    SIM_BLAS cublas##LETTER##gemv(cublasHandle_t handle, cublasOperation_t of_a, int m, int n, const T* alpha,         \
                                  const T* a, int lda, const T* x, int x_step, const T* beta, T* y, int y_step) {      \
        bool plain = of_a == CUBLAS_OP_N;                                                                              \
        return ::sim::blas::multiply("cublas" #LETTER "gemv", handle, 1, plain ? m : n, plain ? n : m, alpha,          \
                                     {x, TYPE, x_step, 0, CUBLAS_OP_N},                                                \
                                     {a, TYPE, lda, 0, plain ? CUBLAS_OP_T : CUBLAS_OP_N}, beta,                       \
                                     {y, TYPE, y_step, 0, CUBLAS_OP_N}, 1, TYPE);                                      \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int x_step,          \
                                 const T* y, int y_step, T* a, int lda) {                                              \
        return ::sim::blas::multiply("cublas" #LETTER "ger", handle, m, n, 1, alpha,                                   \
                                     {x, TYPE, x_step, 0, CUBLAS_OP_T}, {y, TYPE, y_step, 0, CUBLAS_OP_N}, nullptr,    \
                                     {a, TYPE, lda, 0, CUBLAS_OP_N}, 1, TYPE);                                         \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##geam(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, \
                                  const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c,       \
                                  int ldc) {                                                                           \
        return ::sim::blas::add("cublas" #LETTER "geam", handle, m, n, alpha, {a, TYPE, lda, 0, of_a}, beta,           \
                                {b, TYPE, ldb, 0, of_b}, {c, TYPE, ldc, 0, CUBLAS_OP_N}, TYPE);                        \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int x_step, T* y,          \
                                  int y_step) {                                                                        \
        return ::sim::blas::vectors("cublas" #LETTER "axpy", ::sim::blas::Vectors::axpy, handle, n, alpha, x, x_step,  \
                                    y, y_step, nullptr, TYPE);                                                         \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##copy(cublasHandle_t handle, int n, const T* x, int x_step, T* y, int y_step) {            \
        return ::sim::blas::vectors("cublas" #LETTER "copy", ::sim::blas::Vectors::copy, handle, n, nullptr, x,        \
                                    x_step, y, y_step, nullptr, TYPE);                                                 \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##swap(cublasHandle_t handle, int n, T* x, int x_step, T* y, int y_step) {                  \
        return ::sim::blas::vectors("cublas" #LETTER "swap", ::sim::blas::Vectors::swap, handle, n, nullptr, x,        \
                                    x_step, y, y_step, nullptr, TYPE);                                                 \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##scal(cublasHandle_t handle, int n, const T* alpha, T* x, int x_step) {                    \
        return ::sim::blas::vectors("cublas" #LETTER "scal", ::sim::blas::Vectors::scale, handle, n, alpha, x, x_step, \
                                    x, x_step, nullptr, TYPE);                                                         \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##dot(cublasHandle_t handle, int n, const T* x, int x_step, const T* y, int y_step,         \
                                 T* result) {                                                                          \
        return ::sim::blas::vectors("cublas" #LETTER "dot", ::sim::blas::Vectors::dot, handle, n, nullptr, x, x_step,  \
                                    const_cast<T*>(y), y_step, result, TYPE);                                          \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##nrm2(cublasHandle_t handle, int n, const T* x, int x_step, T* result) {                   \
        return ::sim::blas::vectors("cublas" #LETTER "nrm2", ::sim::blas::Vectors::norm, handle, n, nullptr, x,        \
                                    x_step, nullptr, 1, result, TYPE);                                                 \
    }                                                                                                                  \
    SIM_BLAS cublas##LETTER##asum(cublasHandle_t handle, int n, const T* x, int x_step, T* result) {                   \
        return ::sim::blas::vectors("cublas" #LETTER "asum", ::sim::blas::Vectors::sum_of_sizes, handle, n, nullptr,   \
                                    x, x_step, nullptr, 1, result, TYPE);                                              \
    }
SIM_BLAS_REAL(S, float, CUDA_R_32F)
SIM_BLAS_REAL(D, double, CUDA_R_64F)
SIM_BLAS_TYPE(H, __half, CUDA_R_16F)
#undef SIM_BLAS_REAL
#undef SIM_BLAS_TYPE

// Returns the 1-based index of the element of largest magnitude.
SIM_BLAS cublasIsamax(cublasHandle_t handle, int n, const float* x, int x_step, int* result) {
    return ::sim::blas::vectors("cublasIsamax", ::sim::blas::Vectors::largest, handle, n, nullptr, x, x_step, nullptr,
                                1, result, CUDA_R_32F);
}
SIM_BLAS cublasIdamax(cublasHandle_t handle, int n, const double* x, int x_step, int* result) {
    return ::sim::blas::vectors("cublasIdamax", ::sim::blas::Vectors::largest, handle, n, nullptr, x, x_step, nullptr,
                                1, result, CUDA_R_64F);
}

namespace sim {
namespace blas {
inline cudaDataType scalars_of(cublasComputeType_t compute) {
    return compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC   ? CUDA_R_64F
           : compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC ? CUDA_R_16F
           : compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC ? CUDA_R_32I
                                                                                     : CUDA_R_32F;
}
// In cuBLAS 10, the compute type is a cudaDataType, which is also the type of alpha and beta.
inline cudaDataType scalars_of(cudaDataType compute) { return compute; }
inline Rounding rounding_of(cublasComputeType_t compute) {
    return compute == CUBLAS_COMPUTE_32F_FAST_TF32   ? Rounding::tf32
           : compute == CUBLAS_COMPUTE_32F_FAST_16F  ? Rounding::f16
           : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? Rounding::bf16
                                                     : Rounding::none;
}
inline Rounding rounding_of(cudaDataType) { return Rounding::none; }
}  // namespace blas
}  // namespace sim

template <typename Compute>
SIM_BLAS cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                      const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                      cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                      Compute compute, cublasGemmAlgo_t) {
    return ::sim::blas::multiply("cublasGemmEx", handle, m, n, k, alpha, {a, type_a, lda, 0, of_a},
                                 {b, type_b, ldb, 0, of_b}, beta, {c, type_c, ldc, 0, CUBLAS_OP_N}, 1,
                                 ::sim::blas::scalars_of(compute), true, ::sim::blas::rounding_of(compute));
}
template <typename Compute>
SIM_BLAS cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                                    int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                                    long long stride_a, const void* b, cudaDataType type_b, int ldb, long long stride_b,
                                    const void* beta, void* c, cudaDataType type_c, int ldc, long long stride_c,
                                    int batches, Compute compute, cublasGemmAlgo_t) {
    return ::sim::blas::multiply("cublasGemmStridedBatchedEx", handle, m, n, k, alpha, {a, type_a, lda, stride_a, of_a},
                                 {b, type_b, ldb, stride_b, of_b}, beta, {c, type_c, ldc, stride_c, CUBLAS_OP_N},
                                 batches, ::sim::blas::scalars_of(compute), true, ::sim::blas::rounding_of(compute));
}

// Copies between the host and the device: of vectors with increments `step`, and of matrices with leading dimensions.
// `LAST` declares the stream of an asynchronous copy, and `STREAM` passes it on.
#define SIM_BLAS_COPIES(DIRECTION, ASYNC, KIND, LAST, STREAM)                                                        \
    inline cublasStatus_t cublas##DIRECTION##Matrix##ASYNC(int rows, int columns, int bytes, const void* a, int lda, \
                                                           void* b, int ldb LAST) {                                  \
        size_t size = static_cast<size_t>(bytes);                                                                    \
        cudaError_t error =                                                                                          \
            cudaMemcpy2D##ASYNC(b, size * static_cast<size_t>(ldb), a, size * static_cast<size_t>(lda),              \
                                size * static_cast<size_t>(rows), static_cast<size_t>(columns), KIND STREAM);        \
        return error ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;                                          \
    }                                                                                                                \
    inline cublasStatus_t cublas##DIRECTION##Vector##ASYNC(int n, int bytes, const void* x, int x_step, void* y,     \
                                                           int y_step LAST) {                                        \
        return cublas##DIRECTION##Matrix##ASYNC(1, n, bytes, x, x_step, y, y_step STREAM);                           \
    }
#define SIM_NOTHING
#define SIM_LAST , cudaStream_t stream
#define SIM_STREAM , stream
SIM_BLAS_COPIES(Set, , cudaMemcpyHostToDevice, SIM_NOTHING, SIM_NOTHING)
SIM_BLAS_COPIES(Get, , cudaMemcpyDeviceToHost, SIM_NOTHING, SIM_NOTHING)
SIM_BLAS_COPIES(Set, Async, cudaMemcpyHostToDevice, SIM_LAST, SIM_STREAM)
SIM_BLAS_COPIES(Get, Async, cudaMemcpyDeviceToHost, SIM_LAST, SIM_STREAM)
#undef SIM_BLAS_COPIES
#undef SIM_NOTHING
#undef SIM_LAST
#undef SIM_STREAM

// cublas_v2.h of NVIDIA defines the names without a suffix as macros of these.
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasGetVersion_v2 cublasGetVersion
#define cublasSetWorkspace_v2 cublasSetWorkspace
#define cublasSetStream_v2 cublasSetStream
#define cublasGetStream_v2 cublasGetStream
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasGetPointerMode_v2 cublasGetPointerMode
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
#define cublasSgemv_v2 cublasSgemv
#define cublasDgemv_v2 cublasDgemv
#define cublasSger_v2 cublasSger
#define cublasDger_v2 cublasDger
#define cublasSaxpy_v2 cublasSaxpy
#define cublasDaxpy_v2 cublasDaxpy
#define cublasScopy_v2 cublasScopy
#define cublasDcopy_v2 cublasDcopy
#define cublasSswap_v2 cublasSswap
#define cublasDswap_v2 cublasDswap
#define cublasSscal_v2 cublasSscal
#define cublasDscal_v2 cublasDscal
#define cublasSdot_v2 cublasSdot
#define cublasDdot_v2 cublasDdot
#define cublasSnrm2_v2 cublasSnrm2
#define cublasDnrm2_v2 cublasDnrm2
#define cublasSasum_v2 cublasSasum
#define cublasDasum_v2 cublasDasum
#define cublasIsamax_v2 cublasIsamax
#define cublasIdamax_v2 cublasIdamax
