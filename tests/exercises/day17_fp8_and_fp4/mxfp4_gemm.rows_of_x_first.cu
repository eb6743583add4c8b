// In mma.sync, 16 rows of x are operand A, and eight rows of w are operand B. A table in constant memory converts e2m1.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

__constant__ float table[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

__global__ void __launch_bounds__(32)
    rows_of_x_first(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales, __nv_bfloat16* y,
                    int rows, int in, int out) {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4, row = blockIdx.y * 16 + g, column0 = blockIdx.x * 32;
    float sums[4][4] = {};
    for (int k = 0; k < in; k += 16) {
        unsigned a[4] = {};
        for (int r = 0; r < 4; ++r) {
            const int own = row + r % 2 * 8;
            if (own < rows) {
                a[r] = *reinterpret_cast<const unsigned*>(x + static_cast<size_t>(own) * in + k + r / 2 * 8 + 2 * t);
            }
        }
        for (int tile = 0; tile < 4; ++tile) {
            const int column = column0 + 8 * tile + g;
            unsigned b[2] = {};
            for (int r = 0; r < 2 && column < out; ++r) {
                const size_t place = static_cast<size_t>(column) * in + k + 8 * r + 2 * t;
                const unsigned two = w[place / 2];
                const float scale = exp2f(static_cast<float>(w_scales[place / 32]) - 127.0f);
                b[r] = llmk::pack_pair<__nv_bfloat16>(table[two & 15] * scale, table[two >> 4] * scale);
            }
            llmk::mma_m16n8k16<__nv_bfloat16>(sums[tile], a, b[0], b[1]);
        }
    }
    for (int i = 0; i < 16; ++i) {
        const int to_row = row + i % 4 / 2 * 8, column = column0 + i / 4 * 8 + 2 * t + i % 2;
        if (to_row < rows && column < out) {
            y[static_cast<size_t>(to_row) * out + column] = __float2bfloat16(sums[i / 4][i % 4]);
        }
    }
}

extern "C" void mxfp4_gemm(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales,
                           __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    rows_of_x_first<<<dim3((out_features + 31) / 32, (rows + 15) / 16), 32, 0, stream>>>(x, w, w_scales, y, rows,
                                                                                         in_features, out_features);
}
