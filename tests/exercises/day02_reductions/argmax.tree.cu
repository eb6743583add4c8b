// A correct argmax with a different design: a tree in shared memory over all threads. Each thread starts with an
// element of the row, so no start value like -infinity is needed. Threads past the end of the row start with column 0.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 512;

__device__ bool wins(float a, int a_col, float b, int b_col) {
    const bool a_nan = isnan(a);
    const bool b_nan = isnan(b);
    if (a_nan != b_nan) return a_nan;
    if (!a_nan && a != b) return a > b;
    return a_col < b_col;
}

// x: (rows, cols), one block per row; out: (rows).
template <typename T>
__global__ void argmax_rows(const T* x, int* out, int cols) {
    __shared__ float values[kThreads];
    __shared__ int columns[kThreads];
    const int me = threadIdx.x;
    x += static_cast<long long>(blockIdx.x) * cols;
    int column = me < cols ? me : 0;
    float value = static_cast<float>(x[column]);
    for (int col = me + kThreads; col < cols; col += kThreads) {
        const float candidate = static_cast<float>(x[col]);
        if (wins(candidate, col, value, column)) {
            value = candidate;
            column = col;
        }
    }
    values[me] = value;
    columns[me] = column;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (me < half && wins(values[me + half], columns[me + half], values[me], columns[me])) {
            values[me] = values[me + half];
            columns[me] = columns[me + half];
        }
    }
    if (me == 0) out[blockIdx.x] = columns[0];
}

template <typename T>
void launch(const T* x, int* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    argmax_rows<<<rows, kThreads, 0, stream>>>(x, out, cols);
}
