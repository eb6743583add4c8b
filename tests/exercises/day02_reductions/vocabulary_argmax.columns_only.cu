// Correct alternative: each block stores only the column of its best value; the second kernel reads the values again
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Best {
    float value;
    int col;  // -1 means no value yet
};

__device__ Best better(Best a, Best b) {
    if (a.col < 0 || b.col < 0) return a.col < 0 ? b : a;
    if (isnan(a.value) != isnan(b.value)) return isnan(a.value) ? a : b;
    if (!isnan(a.value) && a.value != b.value) return a.value > b.value ? a : b;
    return a.col < b.col ? a : b;
}

// Return the best value and column of the block's 128 threads, to thread 0.
__device__ Best best_of_block(Best mine) {
    __shared__ Best all[128];
    all[threadIdx.x] = mine;
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) all[threadIdx.x] = better(all[threadIdx.x], all[threadIdx.x + half]);
    }
    return all[threadIdx.x];
}

template <typename T>
__global__ void parts(const T* x, unsigned long long* partial, int cols) {
    const T* row = x + (size_t)blockIdx.y * cols;
    Best mine{0, -1};
    for (int col = blockIdx.x * 128 + threadIdx.x; col < cols; col += gridDim.x * 128) {
        mine = better(mine, Best{(float)row[col], col});
    }
    mine = best_of_block(mine);
    if (threadIdx.x == 0) partial[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = (unsigned long long)(mine.col + 1);
}

template <typename T>
__global__ void whole(const T* x, const unsigned long long* partial, int* out, int cols, int splits) {
    const T* row = x + (size_t)blockIdx.x * cols;
    Best mine{0, -1};
    for (int i = threadIdx.x; i < splits; i += 128) {
        const int col = (int)partial[(size_t)blockIdx.x * splits + i] - 1;
        if (col >= 0) mine = better(mine, Best{(float)row[col], col});
    }
    mine = best_of_block(mine);
    if (threadIdx.x == 0) out[blockIdx.x] = mine.col;
}

template <typename T>
void launch(const T* x, int* out, unsigned long long* partial, int rows, int cols, int splits, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    parts<<<dim3(splits, rows), 128, 0, stream>>>(x, partial, cols);
    whole<<<rows, 128, 0, stream>>>(x, partial, out, cols, splits);
}
