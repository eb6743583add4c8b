// cuBLASLt: products of matrices that are described by layouts, with an epilogue. It has the attributes that dense
// products use; the other ones return CUBLAS_STATUS_NOT_SUPPORTED. Products are computed as by cublas_api.h.
#pragma once

#include <stdint.h>
#include <string.h>

#include "cublas_api.h"

typedef cublasHandle_t cublasLtHandle_t;  // a handle of cuBLAS may be used as a handle of cuBLASLt

enum cublasLtOrder_t { CUBLASLT_ORDER_COL = 0, CUBLASLT_ORDER_ROW = 1 };
enum cublasLtEpilogue_t {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = 36
};
enum cublasLtPointerMode_t { CUBLASLT_POINTER_MODE_HOST = 0, CUBLASLT_POINTER_MODE_DEVICE = 1 };
enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
    CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};
enum cublasLtMatrixLayoutAttribute_t {
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
    CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
    CUBLASLT_MATRIX_LAYOUT_COLS = 3,
    CUBLASLT_MATRIX_LAYOUT_LD = 4,
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
};

struct cublasLtMatmulDescOpaque_t {
    int32_t compute, scalars, pointer_mode = CUBLASLT_POINTER_MODE_HOST;
    int32_t operation_a = CUBLAS_OP_N, operation_b = CUBLAS_OP_N;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
    int32_t bias_type = -1;  // the type of D
};
struct cublasLtMatrixLayoutOpaque_t {
    uint32_t type;
    uint64_t rows, columns;
    int64_t ld;
    int32_t order = CUBLASLT_ORDER_COL, batches = 1;
    int64_t stride = 0;
};
struct cublasLtMatmulPreferenceOpaque_t {
    uint32_t search_mode = 0;
    uint64_t workspace = 0;
};
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;
typedef cublasLtMatrixLayoutOpaque_t* cublasLtMatrixLayout_t;
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;
struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
};

namespace sim {
namespace blas {

template <typename T>
cublasStatus_t set_attribute(T& field, const void* value, size_t bytes) {
    if (!value || bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&field, value, sizeof field);
    return CUBLAS_STATUS_SUCCESS;
}
// A case of a switch over attributes: the field that has this attribute's value.
#define SIM_ATTRIBUTE_IS(NAME, FIELD) \
    case NAME:                        \
        return sim::blas::set_attribute(FIELD, value, bytes);

// A matrix in row-major order is the transpose of one in column-major order.
inline Matrix matrix_of(const void* data, const cublasLtMatrixLayoutOpaque_t& layout, int32_t operation) {
    cublasOperation_t turned = operation == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
    bool valid = operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
    return {data, static_cast<cudaDataType>(layout.type), layout.ld, layout.stride,
            layout.order == CUBLASLT_ORDER_ROW && valid ? turned : static_cast<cublasOperation_t>(operation)};
}

inline bool same_shape(const cublasLtMatrixLayoutOpaque_t& a, const cublasLtMatrixLayoutOpaque_t& b) {
    return a.rows == b.rows && a.columns == b.columns && a.batches == b.batches;
}

// Returns the status of a product with these descriptors, and the product if it is CUBLAS_STATUS_SUCCESS.
inline cublasStatus_t product_of(cublasLtMatmulDesc_t how, const void* alpha, const void* a,
                                 cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b,
                                 const void* beta, const void* c, cublasLtMatrixLayout_t of_c, const void* d,
                                 cublasLtMatrixLayout_t of_d, Product* product) {
    if (!how || !of_a || !of_b || !of_c || !of_d) return CUBLAS_STATUS_INVALID_VALUE;
    bool plain_a = how->operation_a == CUBLAS_OP_N, plain_b = how->operation_b == CUBLAS_OP_N;
    uint64_t m = plain_a ? of_a->rows : of_a->columns, k = plain_a ? of_a->columns : of_a->rows;
    uint64_t n = plain_b ? of_b->columns : of_b->rows;
    if ((plain_b ? of_b->rows : of_b->columns) != k || of_d->rows != m || of_d->columns != n)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!same_shape(*of_c, *of_d) || of_a->batches != of_d->batches || of_b->batches != of_d->batches)
        return CUBLAS_STATUS_INVALID_VALUE;
    for (cublasLtMatrixLayout_t layout : {of_a, of_b, of_c, of_d}) {
        uint64_t length = layout->order == CUBLASLT_ORDER_ROW ? layout->columns : layout->rows;
        if (layout->ld < 1 || static_cast<uint64_t>(layout->ld) < length) return CUBLAS_STATUS_INVALID_VALUE;
    }
    bool biased = how->epilogue & CUBLASLT_EPILOGUE_BIAS;
    uint32_t rest = how->epilogue & ~static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS);
    Activation activation = rest == CUBLASLT_EPILOGUE_RELU   ? Activation::relu
                            : rest == CUBLASLT_EPILOGUE_GELU ? Activation::gelu
                                                             : Activation::none;
    if (activation == Activation::none && rest != (biased ? 0u : CUBLASLT_EPILOGUE_DEFAULT))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (biased && !how->bias) return CUBLAS_STATUS_INVALID_VALUE;
    if (biased && of_d->order != CUBLASLT_ORDER_COL) return CUBLAS_STATUS_NOT_SUPPORTED;
    auto compute = static_cast<cublasComputeType_t>(how->compute);
    auto scalars = static_cast<cudaDataType>(how->scalars);
    if (scalars != scalars_of(compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
    *product = {static_cast<long long>(m),
                static_cast<long long>(n),
                static_cast<long long>(k),
                alpha,
                matrix_of(a, *of_a, how->operation_a),
                matrix_of(b, *of_b, how->operation_b),
                beta,
                matrix_of(c, *of_c, CUBLAS_OP_N),
                matrix_of(d, *of_d, CUBLAS_OP_N),
                of_d->batches,
                scalars,
                true,
                rounding_of(compute)};
    product->bias = biased ? how->bias : nullptr;
    product->bias_type =
        static_cast<cudaDataType>(how->bias_type < 0 ? static_cast<int32_t>(of_d->type) : how->bias_type);
    product->activation = activation;
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace blas
}  // namespace sim

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return cublasCreate(handle); }
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy(handle); }
inline size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

#define SIM_DESTROY(NAME)                                      \
    inline cublasStatus_t NAME##Destroy(NAME##_t descriptor) { \
        delete descriptor;                                     \
        return CUBLAS_STATUS_SUCCESS;                          \
    }
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* how, cublasComputeType_t compute,
                                               cudaDataType_t scalars) {
    *how = new cublasLtMatmulDescOpaque_t{static_cast<int32_t>(compute), static_cast<int32_t>(scalars)};
    return CUBLAS_STATUS_SUCCESS;
}
SIM_DESTROY(cublasLtMatmulDesc)
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t how, cublasLtMatmulDescAttributes_t name,
                                                     const void* value, size_t bytes) {
    switch (name) {
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, how->compute)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_SCALE_TYPE, how->scalars)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_POINTER_MODE, how->pointer_mode)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_TRANSA, how->operation_a)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_TRANSB, how->operation_b)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_EPILOGUE, how->epilogue)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_BIAS_POINTER, how->bias)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, how->bias_type)
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                                 uint64_t columns, int64_t ld) {
    *layout = new cublasLtMatrixLayoutOpaque_t{static_cast<uint32_t>(type), rows, columns, ld};
    return CUBLAS_STATUS_SUCCESS;
}
SIM_DESTROY(cublasLtMatrixLayout)
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t name, const void* value,
                                                       size_t bytes) {
    switch (name) {
        SIM_ATTRIBUTE_IS(CUBLASLT_MATRIX_LAYOUT_TYPE, layout->type)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATRIX_LAYOUT_ORDER, layout->order)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATRIX_LAYOUT_ROWS, layout->rows)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATRIX_LAYOUT_COLS, layout->columns)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATRIX_LAYOUT_LD, layout->ld)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout->batches)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout->stride)
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = new cublasLtMatmulPreferenceOpaque_t;
    return CUBLAS_STATUS_SUCCESS;
}
SIM_DESTROY(cublasLtMatmulPreference)
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                           cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                                           size_t bytes) {
    switch (name) {
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_PREF_SEARCH_MODE, preference->search_mode)
        SIM_ATTRIBUTE_IS(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, preference->workspace)
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

#undef SIM_DESTROY
#undef SIM_ATTRIBUTE_IS

// Returns one algorithm, which needs no workspace.
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t how,
                                                     cublasLtMatrixLayout_t of_a, cublasLtMatrixLayout_t of_b,
                                                     cublasLtMatrixLayout_t of_c, cublasLtMatrixLayout_t of_d,
                                                     cublasLtMatmulPreference_t preference, int requested,
                                                     cublasLtMatmulHeuristicResult_t* results, int* returned) {
    *returned = 0;
    if (!preference || requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
    sim::blas::Product product;
    cublasStatus_t status = sim::blas::product_of(how, nullptr, nullptr, of_a, nullptr, of_b, nullptr, nullptr, of_c,
                                                  nullptr, of_d, &product);
    if (status) return status;
    results[0] = {};
    *returned = 1;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_BLAS cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t how, const void* alpha, const void* a,
                        cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b, const void* beta,
                        const void* c, cublasLtMatrixLayout_t of_c, void* d, cublasLtMatrixLayout_t of_d,
                        const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
    sim::blas::Product product;
    cublasStatus_t status = sim::blas::product_of(how, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, &product);
    if (status) return status;
    return sim::blas::perform_in("cublasLtMatmul", handle, product, stream,
                                 static_cast<cublasPointerMode_t>(how->pointer_mode));
}
