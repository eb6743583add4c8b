// cublasGemmEx and cublasLtMatmul: types, orders, operations, leading dimensions, epilogues, and incorrect calls.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <vector>

template <typename T>
T* on_device(int n, int seed, float scale = 1) {
    std::vector<T> values(n);
    for (int i = 0; i < n; ++i) values[i] = T(scale * float((i * 7 + seed) % 11 - 5));
    T* device;
    cudaMalloc(&device, n * sizeof(T));
    cudaMemcpy(device, values.data(), n * sizeof(T), cudaMemcpyHostToDevice);
    return device;
}

template <typename T>
void show(const char* name, const T* device, int n) {
    std::vector<T> values(n);
    cudaDeviceSynchronize();
    cudaMemcpy(values.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
    printf("%s", name);
    for (T value : values) printf(" %.9g", double(float(value)));
    printf("\n");
}

cublasHandle_t cublas;
cublasLtHandle_t lt;

// d = epilogue(a b), with the layouts of a [m, k], b [k, n] and d [m, n] after the operations.
struct Product {
    int m = 4, n = 3, k = 5;
    cublasOperation_t of_a = CUBLAS_OP_N, of_b = CUBLAS_OP_N;
    cublasLtOrder_t order_a = CUBLASLT_ORDER_COL, order_b = CUBLASLT_ORDER_COL, order_d = CUBLASLT_ORDER_COL;
    int ld = 6;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    cudaDataType type = CUDA_R_32F, type_d = CUDA_R_32F;
    unsigned epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
    int k_of_b = 5;

    cublasStatus_t run(const void* a, const void* b, void* d, cudaStream_t stream = 0, float beta = 0,
                       const void* c = nullptr) const {
        cublasLtMatmulDesc_t how;
        cublasLtMatrixLayout_t layout_a, layout_b, layout_d;
        cublasLtMatmulDescCreate(&how, compute, CUDA_R_32F);
        cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_TRANSA, &of_a, sizeof of_a);
        cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_TRANSB, &of_b, sizeof of_b);
        cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
        cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        cublasLtMatrixLayoutCreate(&layout_a, type, of_a ? k : m, of_a ? m : k, ld);
        cublasLtMatrixLayoutCreate(&layout_b, type, of_b ? n : k_of_b, of_b ? k_of_b : n, ld);
        cublasLtMatrixLayoutCreate(&layout_d, type_d, m, n, ld);
        cublasLtMatrixLayoutSetAttribute(layout_a, CUBLASLT_MATRIX_LAYOUT_ORDER, &order_a, sizeof order_a);
        cublasLtMatrixLayoutSetAttribute(layout_b, CUBLASLT_MATRIX_LAYOUT_ORDER, &order_b, sizeof order_b);
        cublasLtMatrixLayoutSetAttribute(layout_d, CUBLASLT_MATRIX_LAYOUT_ORDER, &order_d, sizeof order_d);
        float one = 1;
        cublasStatus_t status = cublasLtMatmul(lt, how, &one, a, layout_a, b, layout_b, &beta, c ? c : d, layout_d, d,
                                               layout_d, nullptr, nullptr, 0, stream);
        cublasLtMatrixLayoutDestroy(layout_a);
        cublasLtMatrixLayoutDestroy(layout_b);
        cublasLtMatrixLayoutDestroy(layout_d);
        cublasLtMatmulDescDestroy(how);
        return status;
    }
};

void wrong() {
    float *a = on_device<float>(64, 1), *b = on_device<float>(64, 2), *d = on_device<float>(64, 3), one = 1;
    __half* h = on_device<__half>(64, 1);
    auto said = [](cublasStatus_t status) { printf("%s\n", cublasGetStatusName(status)); };
    auto ex = [&](cudaDataType type, cudaDataType out, cublasComputeType_t compute, int ld = 6) {
        return cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, 4, 3, 5, &one, type == CUDA_R_16F ? (void*)h : a, type,
                            ld, type == CUDA_R_16F ? (void*)h : b, type, 6, &one, d, out, 6, compute,
                            CUBLAS_GEMM_DEFAULT);
    };
    said(ex(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_16F));            // f32 matrices with sums in f16
    said(ex(CUDA_R_32F, CUDA_R_16F, CUBLAS_COMPUTE_32F));            // f32 matrices with a result in f16
    said(ex(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F_FAST_TF32));  // tf32 is for f32 matrices
    said(ex(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 3));         // a leading dimension of 3 for 4 rows
    Product product;
    product.k_of_b = 4;  // a has 5 columns
    said(product.run(a, b, d));
    product = {};
    product.ld = 3;
    said(product.run(a, b, d));
    product = {};
    product.epilogue = CUBLASLT_EPILOGUE_BIAS;  // without a bias
    said(product.run(a, b, d));
    product.bias = a;
    product.order_d = CUBLASLT_ORDER_ROW;
    said(product.run(a, b, d));
    product = {};
    product.epilogue = 64;
    said(product.run(a, b, d));
    product = {};
    product.epilogue = CUBLASLT_EPILOGUE_BIAS;
    float host[4] = {};
    product.bias = host;  // not in device memory
    said(product.run(a, b, d));
    cublasLtMatmulDesc_t how;
    cublasLtMatmulDescCreate(&how, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    char small = 1;
    said(cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_TRANSA, &small, sizeof small));
    cublasLtMatmulDescDestroy(how);
    product = {};
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    float result;
    product.run(a, b, d, stream);
    cudaMemcpyAsync(&result, d, 4, cudaMemcpyDeviceToHost, cudaStreamPerThread);  // may run before the product
}

int main(int argc, char**) {
    cublasCreate(&cublas);
    cublasLtCreate(&lt);
    if (argc > 1) {
        wrong();
        printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    float *a = on_device<float>(64, 1), *b = on_device<float>(64, 2), *bias = on_device<float>(8, 4), *d;
    for (int form = 0; form < 32; ++form) {
        Product product;
        if (form & 1) product.of_a = CUBLAS_OP_T;
        if (form & 2) product.of_b = CUBLAS_OP_T;
        if (form & 4) product.order_a = CUBLASLT_ORDER_ROW;
        if (form & 8) product.order_b = CUBLASLT_ORDER_ROW;
        if (form & 16) product.order_d = CUBLASLT_ORDER_ROW;
        d = on_device<float>(32, 3);
        product.run(a, b, d);
        show("form", d, 24);
    }
    for (unsigned epilogue : {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
                              CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS}) {
        Product product;
        product.epilogue = epilogue;
        product.bias = bias;
        d = on_device<float>(32, 3);
        product.run(a, b, d);
        show("epilogue", d, 18);
    }
    float* c = on_device<float>(32, 5);
    d = on_device<float>(32, 3);
    Product().run(a, b, d, 0, 0.5f, c);
    show("c", d, 18);
    float *fine_a = on_device<float>(64, 1, 1.0009765625f + 1 / 4096.0f), *fine_b = on_device<float>(64, 2, 0.1f);
    for (cublasComputeType_t compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF,
                                        CUBLAS_COMPUTE_32F_FAST_16F}) {
        float one = 1, zero = 0;
        cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, 4, 3, 5, &one, fine_a, CUDA_R_32F, 6, fine_b, CUDA_R_32F, 6,
                     &zero, d, CUDA_R_32F, 4, compute, CUBLAS_GEMM_DEFAULT);
        show("compute", d, 12);
    }
    __half *h = on_device<__half>(64, 1), *h_out = on_device<__half>(32, 3), *h_bias = on_device<__half>(8, 4);
    Product half;
    half.type = half.type_d = CUDA_R_16F;
    half.epilogue = CUBLASLT_EPILOGUE_BIAS;
    half.bias = h_bias;  // has the type of d
    half.run(h, h, h_out);
    show("half", h_out, 18);
    cublasDestroy(cublas);
    cublasLtDestroy(lt);
}
