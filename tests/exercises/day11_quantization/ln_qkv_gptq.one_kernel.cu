// A different design: a single kernel for any number of rows. Each block first computes mean and variance of its 64
// rows. It normalizes each tile of x when it stores the tile to shared memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

constexpr int kRows = 64, kColumns = 128, kStep = 32;
constexpr int kThreads = 256;         // eight warps; each computes 16 rows and 64 columns of the tile
constexpr int kLeft = kStep + 8;      // row stride of the tile of normalized rows, in elements
constexpr int kRight = kColumns + 8;  // row stride of the tile of weights
constexpr int kOut = kColumns + 4;    // row stride of the f32 sums

struct Layer {
    const int* qweight;
    const int* qzeros;
    const __half* scales;
    const int* g_idx;
    const __half* bias;
    int width, group_size;
    bool act_order, has_bias;
};

// Returns mean and variance of a row, by one warp in two passes.
__device__ float2 statistics(const __half* row, int width) {
    float sum = 0;
    for (int i = threadIdx.x % 32; i < width; i += 32) sum += __half2float(row[i]);
    for (int reach = 16; reach > 0; reach /= 2) sum += __shfl_xor_sync(0xffffffff, sum, reach);
    const float mean = sum / width;
    float squares = 0;
    for (int i = threadIdx.x % 32; i < width; i += 32) {
        const float apart = __half2float(row[i]) - mean;
        squares += apart * apart;
    }
    for (int reach = 16; reach > 0; reach /= 2) squares += __shfl_xor_sync(0xffffffff, squares, reach);
    return make_float2(mean, squares / width);
}

// Dequantizes rows k ... k + 31 of 128 columns into a tile. A thread reads the words of four columns.
__device__ void load_weights(__half (&tile)[kStep][kRight], const Layer& w, int k, int first_column) {
    const int out_features = 3 * w.width;
    for (int piece = threadIdx.x; piece < kStep / 8 * kColumns / 4; piece += kThreads) {
        const int word_row = piece / (kColumns / 4), column = first_column + piece % (kColumns / 4) * 4;
        const bool there = k + 8 * word_row < w.width && column < out_features;
        uint4 words = make_uint4(0, 0, 0, 0);
        if (there) {
            const size_t from = static_cast<size_t>(k / 8 + word_row) * out_features + column;
            words = *reinterpret_cast<const uint4*>(w.qweight + from);
        }
        const unsigned q[4] = {words.x, words.y, words.z, words.w};
        int known = -1;
        unsigned zeros = 0;
        uint2 halves = make_uint2(0, 0);
        for (int j = 0; j < 8; ++j) {
            const int at = k + 8 * word_row + j;
            const int group = !there ? -1 : w.act_order ? w.g_idx[at] : at / w.group_size;
            if (group != known) {
                known = group;
                const size_t place = static_cast<size_t>(group) * out_features + column;
                zeros = static_cast<unsigned>(w.qzeros[place / 8]) >> (column % 8 * 4);
                halves = *reinterpret_cast<const uint2*>(w.scales + place);
            }
            const __half2 low = *reinterpret_cast<const __half2*>(&halves.x);
            const __half2 high = *reinterpret_cast<const __half2*>(&halves.y);
            const __half scale[4] = {low.x, low.y, high.x, high.y};
            __half weight[4];
            for (int c = 0; c < 4; ++c) {
                const int value = static_cast<int>(q[c] >> 4 * j & 15) - static_cast<int>(zeros >> 4 * c & 15) - 1;
                weight[c] = __hmul(__int2half_rn(value), scale[c]);
            }
            __half2* to = reinterpret_cast<__half2*>(&tile[8 * word_row + j][column - first_column]);
            to[0] = __halves2half2(weight[0], weight[1]);
            to[1] = __halves2half2(weight[2], weight[3]);
        }
    }
}

__global__ void __launch_bounds__(kThreads)
    product(const __half* x, const __half* weight, const __half* beta, float eps, Layer w, __half* out, int rows) {
    __shared__ __align__(128) __half left[kRows][kLeft];
    __shared__ __align__(128) __half right[kStep][kRight];
    __shared__ __align__(128) float sums[kRows][kOut];
    const int warp = threadIdx.x / 32, down = warp / 2 * 16, across = warp % 2 * 64;
    const int first_row = blockIdx.x * kRows, first_column = blockIdx.y * kColumns;
    __shared__ float mean[kRows], factor[kRows];
    for (int row = warp; row < kRows && first_row + row < rows; row += kThreads / 32) {
        const float2 about = statistics(x + static_cast<size_t>(first_row + row) * w.width, w.width);
        mean[row] = about.x;
        factor[row] = rsqrtf(about.y + eps);
    }
    __syncthreads();

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[4];
    for (int c = 0; c < 4; ++c) wmma::fill_fragment(acc[c], 0.0f);
    for (int k = 0; k < w.width; k += kStep) {
        for (int piece = threadIdx.x; piece < kRows * kStep / 8; piece += kThreads) {
            const int row = piece / (kStep / 8), column = piece % (kStep / 8) * 8;
            uint4 bits = make_uint4(0, 0, 0, 0);
            if (first_row + row < rows && k + column < w.width) {
                bits = *reinterpret_cast<const uint4*>(x + static_cast<size_t>(first_row + row) * w.width + k + column);
                __half2 pair[4];
                for (int p = 0; p < 4; ++p) {
                    const unsigned both = p == 0 ? bits.x : p == 1 ? bits.y : p == 2 ? bits.z : bits.w;
                    const float2 two = __half22float2(*reinterpret_cast<const __half2*>(&both));
                    const int at = k + column + 2 * p;
                    const float y0 = (two.x - mean[row]) * factor[row] * __half2float(weight[at]);
                    const float y1 = (two.y - mean[row]) * factor[row] * __half2float(weight[at + 1]);
                    pair[p] = __floats2half2_rn(y0 + __half2float(beta[at]), y1 + __half2float(beta[at + 1]));
                }
                bits = make_uint4(*reinterpret_cast<unsigned*>(&pair[0]), *reinterpret_cast<unsigned*>(&pair[1]),
                                  *reinterpret_cast<unsigned*>(&pair[2]), *reinterpret_cast<unsigned*>(&pair[3]));
            }
            *reinterpret_cast<uint4*>(&left[row][column]) = bits;
        }
        load_weights(right, w, k, first_column);
        __syncthreads();
        for (int step = 0; step < kStep; step += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
            wmma::load_matrix_sync(a, &left[down][step], kLeft);
            for (int c = 0; c < 4; ++c) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
                wmma::load_matrix_sync(b, &right[step][across + 16 * c], kRight);
                wmma::mma_sync(acc[c], a, b, acc[c]);
            }
        }
        __syncthreads();
    }
    for (int c = 0; c < 4; ++c) {
        wmma::store_matrix_sync(&sums[down][across + 16 * c], acc[c], kOut, wmma::mem_row_major);
    }
    __syncthreads();
    for (int o = threadIdx.x; o < kRows * kColumns; o += kThreads) {
        const int row = first_row + o / kColumns, column = first_column + o % kColumns;
        if (row >= rows || column >= 3 * w.width) continue;
        const float bias = w.has_bias ? __half2float(w.bias[column]) : 0.0f;
        const size_t place = (static_cast<size_t>(column / w.width) * rows + row) * w.width + column % w.width;
        out[place] = __float2half(sums[o / kColumns][o % kColumns] + bias);
    }
}

extern "C" void ln_qkv_gptq(const __half* x, const __half* weight, const __half* beta, const int* qweight,
                            const int* qzeros, const __half* scales, const int* g_idx, const __half* bias,
                            __half* normalized, __half* out, int batch, int length, int in_features, int group_size,
                            bool act_order, bool has_bias, float eps, cudaStream_t stream) {
    const int rows = batch * length;
    if (rows == 0 || in_features == 0) return;
    const Layer w = {qweight, qzeros, scales, g_idx, bias, in_features, group_size, act_order, has_bias};
    const dim3 grid((rows + kRows - 1) / kRows, (3 * in_features + kColumns - 1) / kColumns);
    product<<<grid, kThreads, 0, stream>>>(x, weight, beta, eps, w, out, rows);
}
