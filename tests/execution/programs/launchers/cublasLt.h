// What llm.c's common.h names of cuBLASLt; the kernels launched here call none of it.
#pragma once
#include <cublas_v2.h>

typedef struct cublasLtContext* cublasLtHandle_t;
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t*) { return CUBLAS_STATUS_NOT_SUPPORTED; }
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_NOT_SUPPORTED; }
