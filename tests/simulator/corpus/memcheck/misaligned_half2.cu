// Rows have an odd length, so every second row starts in the middle of a half2.
// n = 1005, copy_rows<<<kRows, 32>>>(x, out, n / kRows)
#include <cuda_fp16.h>

constexpr int kRows = 15;

__global__ void copy_rows(const __half* x, __half* out, int columns) {
    const __half* row = x + blockIdx.x * columns;
    __half* out_row = out + blockIdx.x * columns;
#ifdef CLEAN
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out_row[i] = row[i];
#else
    for (int i = threadIdx.x; i < columns / 2; i += blockDim.x) {
        reinterpret_cast<__half2*>(out_row)[i] = reinterpret_cast<const __half2*>(row)[i];  // expected finding: misaligned
    }
    if (threadIdx.x == 0) out_row[columns - 1] = row[columns - 1];
#endif
}
