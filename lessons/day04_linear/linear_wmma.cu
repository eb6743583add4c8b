// The smallest linear layer on tensor cores: one warp computes 16 x 16 outputs, with operands from global memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

// x is (rows, inner), weight is (features, inner), out is (rows, features); every size is a multiple of 16.
__global__ void linear_kernel(const __half* x, const __half* weight, float* out, int inner, int features) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < inner; k += 16) {
        wmma::load_matrix_sync(a, x + blockIdx.y * 16 * inner + k, inner);
        wmma::load_matrix_sync(b, weight + blockIdx.x * 16 * inner + k, inner);
        wmma::mma_sync(sum, a, b, sum);
    }
    wmma::store_matrix_sync(out + blockIdx.y * 16 * features + blockIdx.x * 16, sum, features, wmma::mem_row_major);
}

extern "C" void linear_wmma(const __half* x, const __half* weight, float* out, int rows, int inner, int features,
                            cudaStream_t stream) {
    linear_kernel<<<dim3(features / 16, rows / 16), 32, 0, stream>>>(x, weight, out, inner, features);
}
