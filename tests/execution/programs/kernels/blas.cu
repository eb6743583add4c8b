// cuBLAS: matrix products, vector operations, and incorrect calls.
#include <cublas_v2.h>
#include <cstdio>
#include <cuda_fp16.h>
#include <vector>

template <typename T>
T* on_device(int n, int seed) {
    std::vector<T> values(n);
    for (int i = 0; i < n; ++i) values[i] = T(float((i * 7 + seed) % 11 - 5));
    T* device;
    cudaMalloc(&device, n * sizeof(T));
    cudaMemcpy(device, values.data(), n * sizeof(T), cudaMemcpyHostToDevice);
    return device;
}

template <typename T>
void show(const char* name, const T* device, int n) {
    std::vector<T> values(n);
    cudaMemcpy(values.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
    printf("%s", name);
    for (T value : values) printf(" %g", double(float(value)));
    printf("\n");
}

int main(int argc, char**) {
    cublasHandle_t handle;
    cublasCreate(&handle);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cublasSetStream(handle, stream);
    const int m = 4, n = 3, k = 5, ld = 6;
    float two = 2, half_one = 0.5f, zero = 0;
    float *a = on_device<float>(64, 1), *b = on_device<float>(64, 2), *c = on_device<float>(64, 3);
    for (int form = 0; form < 4; ++form) {
        cublasOperation_t of_a = form & 1 ? CUBLAS_OP_T : CUBLAS_OP_N, of_b = form & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
        cublasSgemm(handle, of_a, of_b, m, n, k, &two, a, ld, b, ld, &half_one, c, ld);
    }
    cudaStreamSynchronize(stream);
    show("sgemm", c, 18);
    double *x = on_device<double>(20, 4), *y = on_device<double>(20, 5), *matrix = on_device<double>(40, 6), by = -3,
           dot, norm;
    cublasDgemv(handle, CUBLAS_OP_N, m, k, &by, matrix, ld, x, 2, &by, y, 3);
    cublasDgemv(handle, CUBLAS_OP_T, m, k, &by, matrix, ld, x, 1, &by, y, 1);
    cublasDger(handle, m, k, &by, x, 1, y, 2, matrix, ld);
    cublasDaxpy(handle, 5, &by, x, 2, y, 1);
    cublasDscal(handle, 4, &by, x, 1);
    cublasDdot(handle, 6, x, 1, y, 3, &dot);
    cublasDnrm2(handle, 6, x, 1, &norm);
    int largest;
    cublasIdamax(handle, 6, x, 1, &largest);
    cudaStreamSynchronize(stream);
    show("dgemv", y, 20);
    show("dger", matrix, 40);
    printf("dot %g norm %g largest %d\n", dot, norm, largest);
    __half* h = on_device<__half>(64, 7);
    cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 3, &two, h, CUDA_R_16F, 2, 6, h, CUDA_R_16F, 2,
                               6, &zero, c, CUDA_R_32F, 2, 4, 3, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 2, &two, a, 2, &zero, b, 3, b, 3);
    cudaStreamSynchronize(stream);
    show("batched", c, 12);
    show("geam", b, 6);
    if (argc > 1) {
        float host[16] = {};
        cublasStatus_t status =
            cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, a, m, host, k, &zero, c, m);
        printf("%s\n", cublasGetStatusName(status));
        status =
            cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 20, n, k, &two, a, 20, b, k, &zero, c, 20);  // a is too small
        printf("%s\n", cublasGetStatusName(status));
        status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, a, 2, b, k, &zero, c, m);  // lda < m
        printf("%s\n", cublasGetStatusName(status));
        float result;
        cublasSscal(handle, 16, &two, c, 1);                                          // runs in `stream`
        cudaMemcpyAsync(&result, c, 4, cudaMemcpyDeviceToHost, cudaStreamPerThread);  // may run before the scaling
    }
    cublasDestroy(handle);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
