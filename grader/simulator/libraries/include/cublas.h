// The legacy API of cuBLAS: scalars by value, operations as letters, no handle, and the error of the last call in
// cublasGetError. Each function calls the function of the present API.
#pragma once
#define CUBLAS_H_

#ifdef CUBLAS_V2_H_
#error "cublas.h and cublas_v2.h cannot be included together"
#endif
#include "cublas_api.h"

typedef cublasStatus_t cublasStatus;

namespace sim {
namespace legacy_blas {

inline cublasHandle_t handle;
inline cublasStatus_t error;

// Keeps the status of a call for cublasGetError, and returns it.
SIM_INLINE cublasStatus_t keep(cublasStatus_t status) {
    if (status) error = status;
    return status;
}
inline cublasOperation_t operation(char letter) {
    const char letters[] = "nNtTcC";
    int i = 0;
    while (letters[i] && letters[i] != letter) ++i;
    return static_cast<cublasOperation_t>(i / 2);  // 3 for another letter: not an operation
}

}  // namespace legacy_blas
}  // namespace sim

inline cublasStatus_t cublasInit() {
    return ::sim::legacy_blas::handle ? CUBLAS_STATUS_SUCCESS : cublasCreate(&::sim::legacy_blas::handle);
}
inline cublasStatus_t cublasShutdown() {
    cublasStatus_t status =
        ::sim::legacy_blas::handle ? cublasDestroy(::sim::legacy_blas::handle) : CUBLAS_STATUS_NOT_INITIALIZED;
    ::sim::legacy_blas::handle = nullptr;
    return status;
}
inline cublasStatus_t cublasGetError() {
    cublasStatus_t status = ::sim::legacy_blas::error;
    ::sim::legacy_blas::error = CUBLAS_STATUS_SUCCESS;
    return status;
}
inline cublasStatus_t cublasGetVersion(int* version) { return cublasGetVersion(::sim::legacy_blas::handle, version); }
inline cublasStatus_t cublasSetKernelStream(cudaStream_t stream) {
    return cublasSetStream(::sim::legacy_blas::handle, stream);
}
SIM_INLINE cublasStatus_t cublasAlloc(int n, int bytes, void** pointer) {
    if (n <= 0 || bytes <= 0) return CUBLAS_STATUS_INVALID_VALUE;
    return cudaMalloc(pointer, static_cast<size_t>(n) * static_cast<size_t>(bytes)) ? CUBLAS_STATUS_ALLOC_FAILED
                                                                                    : CUBLAS_STATUS_SUCCESS;
}
SIM_INLINE cublasStatus_t cublasFree(void* pointer) {
    return cudaFree(pointer) ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

#define SIM_LEGACY(NAME, PARAMETERS, ...)                                                \
    SIM_INLINE void cublas##NAME PARAMETERS {                                            \
        ::sim::legacy_blas::keep(cublas##NAME(::sim::legacy_blas::handle, __VA_ARGS__)); \
    }
#define SIM_LEGACY_RESULT(NAME, T, PARAMETERS, ...)                                               \
    SIM_INLINE T cublas##NAME PARAMETERS {                                                        \
        T result = 0;                                                                             \
        ::sim::legacy_blas::keep(cublas##NAME(::sim::legacy_blas::handle, __VA_ARGS__, &result)); \
        return result;                                                                            \
    }
#define SIM_LEGACY_TYPE(LETTER, letter, T)                                                                             \
    SIM_LEGACY(LETTER##gemm,                                                                                           \
               (char of_a, char of_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta,  \
                T* c, int ldc),                                                                                        \
               ::sim::legacy_blas::operation(of_a), ::sim::legacy_blas::operation(of_b), m, n, k, &alpha, a, lda, b,   \
               ldb, &beta, c, ldc)                                                                                     \
    SIM_LEGACY(                                                                                                        \
        LETTER##gemv,                                                                                                  \
        (char of_a, int m, int n, T alpha, const T* a, int lda, const T* x, int x_step, T beta, T* y, int y_step),     \
        ::sim::legacy_blas::operation(of_a), m, n, &alpha, a, lda, x, x_step, &beta, y, y_step)                        \
    SIM_LEGACY(LETTER##ger, (int m, int n, T alpha, const T* x, int x_step, const T* y, int y_step, T* a, int lda), m, \
               n, &alpha, x, x_step, y, y_step, a, lda)                                                                \
    SIM_LEGACY(LETTER##axpy, (int n, T alpha, const T* x, int x_step, T* y, int y_step), n, &alpha, x, x_step, y,      \
               y_step)                                                                                                 \
    SIM_LEGACY(LETTER##copy, (int n, const T* x, int x_step, T* y, int y_step), n, x, x_step, y, y_step)               \
    SIM_LEGACY(LETTER##swap, (int n, T* x, int x_step, T* y, int y_step), n, x, x_step, y, y_step)                     \
    SIM_LEGACY(LETTER##scal, (int n, T alpha, T* x, int x_step), n, &alpha, x, x_step)                                 \
    SIM_LEGACY_RESULT(LETTER##dot, T, (int n, const T* x, int x_step, const T* y, int y_step), n, x, x_step, y,        \
                      y_step)                                                                                          \
    SIM_LEGACY_RESULT(LETTER##nrm2, T, (int n, const T* x, int x_step), n, x, x_step)                                  \
    SIM_LEGACY_RESULT(LETTER##asum, T, (int n, const T* x, int x_step), n, x, x_step)                                  \
    SIM_LEGACY_RESULT(I##letter##amax, int, (int n, const T* x, int x_step), n, x, x_step)
SIM_LEGACY_TYPE(S, s, float)
SIM_LEGACY_TYPE(D, d, double)
#undef SIM_LEGACY_TYPE
#undef SIM_LEGACY_RESULT
#undef SIM_LEGACY
