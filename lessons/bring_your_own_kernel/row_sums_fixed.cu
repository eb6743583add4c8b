// Sums the rows of a matrix on the GPU and compares with the CPU: row_sums.cu without its two faults.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        cudaError_t error = (call);                                                                   \
        if (error != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

constexpr int THREADS = 128;

// One thread for each row.
__global__ void row_sums_by_thread(const float* x, float* sums, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int column = 0; column < columns; ++column) sum += x[row * columns + column];
    sums[row] = sum;
}

// One block for each row: every thread adds up its share; then half of the threads add the others' sums, and so on.
__global__ void row_sums_by_block(const float* x, float* sums, int columns) {
    __shared__ float partial[THREADS];
    int thread = threadIdx.x;
    float sum = 0;
    for (int column = thread; column < columns; column += THREADS) sum += x[blockIdx.x * columns + column];
    partial[thread] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread < half) partial[thread] += partial[thread + half];
        __syncthreads();
    }
    if (thread == 0) sums[blockIdx.x] = partial[0];
}

int main(int argc, char** argv) {
    const int rows = argc > 1 ? atoi(argv[1]) : 64, columns = 256;
    std::vector<float> x(rows * columns), sums(rows);
    for (int i = 0; i < rows * columns; ++i) x[i] = static_cast<float>(i % 7);
    float *device_x, *device_sums;
    CHECK(cudaMalloc(&device_x, x.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_sums, rows * sizeof(float)));
    CHECK(cudaMemcpy(device_x, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
    for (bool by_block : {false, true}) {
        if (by_block)
            row_sums_by_block<<<rows, THREADS>>>(device_x, device_sums, columns);
        else
            row_sums_by_thread<<<(rows + THREADS - 1) / THREADS, THREADS>>>(device_x, device_sums, rows, columns);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(sums.data(), device_sums, rows * sizeof(float), cudaMemcpyDeviceToHost));
        int wrong = 0;
        for (int row = 0; row < rows; ++row) {
            float expected = 0;
            for (int column = 0; column < columns; ++column) expected += x[row * columns + column];
            wrong += std::fabs(sums[row] - expected) > 1e-3f;
        }
        printf("%s: %d of %d rows are wrong\n", by_block ? "a block for each row" : "a thread for each row", wrong,
               rows);
    }
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_sums));
}
