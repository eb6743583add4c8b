// Correct alternative: rows of gate_weight and up_weight interleaved in shared memory, so that corresponding gate and
// up rows are neighbors
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }
__device__ float gated(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

// x: [rows, inner]   gate_weight, up_weight: [hidden, inner]   out: [rows, hidden]
template <typename T>
__global__ void fused_kernel(const T* x, const T* gate_weight, const T* up_weight, T* out, int rows, int inner,
                             int hidden) {
    constexpr int ld = 40;                               // 32 columns and 8 of padding
    __shared__ __align__(32) T a[64 * ld], b[128 * ld];  // rows of b alternate: gate, up, gate, up, ...
    __shared__ __align__(32) float sums[32 * 132];
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int r = warp / 4 * 32, f = warp % 4 * 32;  // this warp's 32 x 32 sums
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 4; ++i) wmma::fill_fragment(sum[i / 2][i % 2], 0.0f);
    for (int k0 = 0; k0 < inner; k0 += 32) {
        const int k = k0 + lane;
        for (int i = warp; i < 64; i += 8) {
            const int row = row0 + i, feature = feature0 + i;
            const bool there = feature < hidden && k < inner;
            a[i * ld + lane] = row < rows && k < inner ? x[(size_t)row * inner + k] : T(0.0f);
            b[2 * i * ld + lane] = there ? gate_weight[(size_t)feature * inner + k] : T(0.0f);
            b[(2 * i + 1) * ld + lane] = there ? up_weight[(size_t)feature * inner + k] : T(0.0f);
        }
        __syncthreads();
        for (int kk = 0; kk < 32; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> fb[2];
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(fa[i], a + (r + 16 * i) * ld + kk, ld);
                wmma::load_matrix_sync(fb[i], b + (f + 16 * i) * ld + kk, ld);
            }
            for (int i = 0; i < 4; ++i) wmma::mma_sync(sum[i / 2][i % 2], fa[i / 2], fb[i % 2], sum[i / 2][i % 2]);
        }
        __syncthreads();
    }
    for (int half = 0; half < 2; ++half) {  // the upper 32 rows, then the lower
        if (r == 32 * half) {
            for (int i = 0; i < 4; ++i) {
                wmma::store_matrix_sync(sums + i / 2 * 16 * 132 + f + i % 2 * 16, sum[i / 2][i % 2], 132,
                                        wmma::mem_row_major);
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * 64; i += blockDim.x) {
            const int row = row0 + 32 * half + i / 64, feature = feature0 + i % 64;
            const float2 pair = *reinterpret_cast<const float2*>(sums + i / 64 * 132 + i % 64 * 2);
            if (row < rows && feature < hidden) put(out + (size_t)row * hidden + feature, gated(pair.x, pair.y));
        }
        __syncthreads();
    }
}

template <typename T>
void linear_swiglu(const T* x, const T* gate_weight, const T* up_weight, T* out, int rows, int inner, int hidden,
                   cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    const dim3 grid((hidden + 63) / 64, (rows + 63) / 64);
    fused_kernel<<<grid, 256, 0, stream>>>(x, gate_weight, up_weight, out, rows, inner, hidden);
}
