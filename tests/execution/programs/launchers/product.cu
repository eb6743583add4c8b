// A main function for public GEMM kernels. It compares CALL, declared in HEADER, with C = alpha A B + beta C on the CPU.
#include <stdio.h>
#include <stdlib.h>

#include <cmath>
#include <vector>

#include HEADER

int main(int argc, char** argv) {
    const int which = argc > 1 ? atoi(argv[1]) : 0;
    const int m = 256, n = 256, k = 32;  // multiples of the tile size, which most of the kernels require
    const float alpha = 0.5f, beta = 3.0f;
    std::vector<float> a(m * k), b(k * n), c(m * n), product(m * n);
    for (auto* matrix : {&a, &b, &c})
        for (float& x : *matrix) x = rand() / float(RAND_MAX) - 0.5f;
    float *A, *B, *C;
    cudaMalloc(&A, a.size() * sizeof(float));
    cudaMalloc(&B, b.size() * sizeof(float));
    cudaMalloc(&C, c.size() * sizeof(float));
    cudaMemcpy(A, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(B, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(C, c.data(), c.size() * sizeof(float), cudaMemcpyHostToDevice);
    CALL;
    cudaMemcpy(product.data(), C, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
    double largest = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += double(a[i * k + l]) * b[l * n + j];
            largest = fmax(largest, fabs(alpha * sum + beta * c[i * n + j] - product[i * n + j]));
        }
    printf("%s: the largest error of product %d is %g\n", largest < 1e-4 ? "PASS" : "FAIL", which, largest);
    cudaFree(A), cudaFree(B), cudaFree(C);
}
