// Uses mma.sync m16n8k32. A block of eight warps computes a 128 x 128 tile of y, with 64 columns of k at a time in
// shared memory.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int kRows = 128, kColumns = 128, kDepth = 64, kPitch = kDepth + 16, kWarps = 8;
constexpr int kWarpRows = kRows / 4, kWarpColumns = kColumns / 2;  // 4 x 2 warps per tile

// Copy a tile of `count` rows to shared memory, with zeros outside the matrix.
__device__ __forceinline__ void load(unsigned char* tile, const unsigned char* matrix, int count, int first, int rows,
                                     int k, int in) {
    for (int i = threadIdx.x; i < count * kDepth / 16; i += kWarps * 32) {
        const int row = i / (kDepth / 16), byte = i % (kDepth / 16) * 16;
        uint4 piece = make_uint4(0, 0, 0, 0);
        if (first + row < rows && k + byte < in) {
            piece = *reinterpret_cast<const uint4*>(matrix + static_cast<size_t>(first + row) * in + k + byte);
        }
        *reinterpret_cast<uint4*>(tile + row * kPitch + byte) = piece;
    }
}

__global__ void __launch_bounds__(kWarps * 32)
    gemm(const unsigned char* x, const unsigned char* w, const float* x_scales, const float* w_scales, __nv_bfloat16* y,
         int rows, int in, int out) {
    __shared__ __align__(16) unsigned char x_tile[kRows * kPitch];
    __shared__ __align__(16) unsigned char w_tile[kColumns * kPitch];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
    const int own_row = warp / 2 * kWarpRows, own_column = warp % 2 * kWarpColumns;
    float sums[kWarpRows / 16][kWarpColumns / 8][4] = {};
    for (int k = 0; k < in; k += kDepth) {
        load(x_tile, x, kRows, row0, rows, k, in);
        load(w_tile, w, kColumns, column0, out, k, in);
        __syncthreads();
        for (int part = 0; part < kDepth; part += 32) {
            unsigned a[kWarpRows / 16][4];
            for (int i = 0; i < kWarpRows / 16; ++i) {
                for (int r = 0; r < 4; ++r) {
                    const int row = own_row + 16 * i + g + r % 2 * 8;
                    a[i][r] = *reinterpret_cast<unsigned*>(x_tile + row * kPitch + part + r / 2 * 16 + 4 * t);
                }
            }
            for (int j = 0; j < kWarpColumns / 8; ++j) {
                const unsigned char* column = w_tile + (own_column + 8 * j + g) * kPitch + part + 4 * t;
                const unsigned b0 = *reinterpret_cast<const unsigned*>(column);
                const unsigned b1 = *reinterpret_cast<const unsigned*>(column + 16);
                for (int i = 0; i < kWarpRows / 16; ++i) {
                    float* c = sums[i][j];
                    asm volatile(
                        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                        "{%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                        : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b0), "r"(b1));
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < kWarpRows / 16; ++i) {
        for (int j = 0; j < kWarpColumns / 8; ++j) {
            const int column = column0 + own_column + 8 * j + 2 * t;
            for (int h = 0; h < 2; ++h) {
                const int row = row0 + own_row + 16 * i + g + 8 * h;
                if (row >= rows || column >= out) continue;
                const float scale = x_scales[row];
                *reinterpret_cast<__nv_bfloat162*>(y + static_cast<size_t>(row) * out + column) = __floats2bfloat162_rn(
                    sums[i][j][2 * h] * scale * w_scales[column], sums[i][j][2 * h + 1] * scale * w_scales[column + 1]);
            }
        }
    }
}

extern "C" void fp8_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales, const float* w_scales,
                         __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    gemm<<<grid, kWarps * 32, 0, stream>>>(x, w, x_scales, w_scales, y, rows, in_features, out_features);
}
