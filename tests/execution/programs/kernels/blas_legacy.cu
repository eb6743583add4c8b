// The legacy API of cuBLAS (cublas.h), and the names of cublas_api.h.
#include <cublas.h>
#include <cstdio>

void show(const char* name, const float* device, int n) {
    float values[16];
    cublasGetVector(n, sizeof(float), device, 1, values, 1);
    printf("%s", name);
    for (int i = 0; i < n; ++i) printf(" %g", values[i]);
    printf("\n");
}

int main() {
    printf("%d", cublasShutdown());  // not initialized
    cublasInit();
    cublasInit();
    float a[6] = {1, 2, 3, 4, 5, 6}, *d_a, *d_b, *d_c;
    cublasStatus status = cublasAlloc(6, sizeof(float), reinterpret_cast<void**>(&d_a));
    cublasAlloc(6, sizeof(float), reinterpret_cast<void**>(&d_b));
    cublasAlloc(9, sizeof(float), reinterpret_cast<void**>(&d_c));
    printf(" %d %d\n", status, cublasAlloc(-1, 4, reinterpret_cast<void**>(&d_c)));
    cublasSetMatrix(2, 3, sizeof(float), a, 2, d_a, 2);
    cublasSetVector(6, sizeof(float), a, 1, d_b, 1);
    cublasSgemm('n', 'T', 2, 2, 3, 2.0f, d_a, 2, d_b, 2, 0.0f, d_c, 2);  // 2 * A * A^T
    show("gemm", d_c, 4);
    cublasSgemv('T', 2, 3, 1.0f, d_a, 2, d_b, 1, 0.0f, d_c, 1);
    show("gemv", d_c, 3);
    cublasSger(2, 3, -1.0f, d_b, 1, d_b, 2, d_a, 2);
    show("ger", d_a, 6);
    cublasSaxpy(6, 0.5f, d_b, 1, d_a, 1);
    cublasSscal(3, 2.0f, d_a, 2);
    show("axpy", d_a, 6);
    cublasScopy(3, d_b, 2, d_c, 1);
    cublasSswap(3, d_c, 1, d_b, 1);
    show("swap", d_b, 6);
    printf("dot %g nrm2 %g asum %g amax %d\n", cublasSdot(6, d_b, 1, d_b, 1), cublasSnrm2(2, d_b + 4, 1),
           cublasSasum(6, d_b, 1), cublasIsamax(6, d_b, 1));
    printf("error %d\n", cublasGetError());
    cublasSgemm('x', 'n', 2, 2, 2, 1.0f, d_a, 2, d_b, 2, 0.0f, d_c, 2);  // no such operation
    status = cublasGetError();
    printf("error %d %d\n", status, cublasGetError());
    cublasHandle_t handle;
    cublasCreate_v2(&handle);
    float alpha = 3;
    cublasSscal_v2(handle, 6, &alpha, d_b, 1);
    cublasDestroy_v2(handle);
    show("v2", d_b, 6);
    for (int i = 0; i < 1000; ++i) status = cublasCreate(&handle);  // never destroyed
    printf("created %d\n", status);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cublasSetVectorAsync(3, sizeof(float), a, 2, d_c, 1, stream);
    cublasGetMatrixAsync(1, 3, sizeof(float), d_c, 1, a, 1, stream);
    cudaStreamSynchronize(stream);
    printf("async %g %g %g\n", a[0], a[1], a[2]);
    cublasFree(d_a), cublasFree(d_b), cublasFree(d_c);
    return cublasShutdown();
}
