// WMMA on 8-bit integers and on doubles, and mma.sync whose sums saturate.
#include <mma.h>
#include <stdint.h>

using namespace nvcuda;

template <int M, int N, int K, typename T, typename LayoutA, typename LayoutB, typename Sum>
__global__ void product(const T* a, const T* b, const Sum* c, Sum* d, bool sums_by_row) {
    wmma::layout_t layout = sums_by_row ? wmma::mem_row_major : wmma::mem_col_major;
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fragment_a;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fragment_b;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sums;
    static_assert(fragment_a.num_elements == M * K / 32 && sums.num_elements == M * N / 32, "as nvcc has them");
    wmma::load_matrix_sync(sums, c, 48, layout);
    wmma::load_matrix_sync(fragment_a, a, 48);
    wmma::load_matrix_sync(fragment_b, b, 48);
    wmma::mma_sync(sums, fragment_a, fragment_b, sums);
    wmma::store_matrix_sync(d, sums, 48, layout);
}

__global__ void saturated(int* sums, int* sums_of_asm) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> c, d;
    wmma::fill_fragment(a, (signed char)2);
    wmma::fill_fragment(b, (signed char)100);
    wmma::fill_fragment(c, 2147483000);
    wmma::mma_sync(d, a, b, c, true);
    wmma::store_matrix_sync(sums, d, 16, wmma::mem_row_major);
    int e[4], two = 0x02020202, minus = 0x9c9c9c9c, low = -2147483000;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %4}, {%5}, {%6, %6, %6, %7};"
        : "=r"(e[0]), "=r"(e[1]), "=r"(e[2]), "=r"(e[3])
        : "r"(two), "r"(minus), "r"(low), "r"(7));
    for (int i = 0; i < 4; ++i) sums_of_asm[threadIdx.x * 4 + i] = e[i];
}

extern "C" void s8_16x16x16_00(const int8_t* a, const int8_t* b, const int* c, int* d, bool by_row,
                               cudaStream_t stream) {
    product<16, 16, 16, signed char, wmma::row_major, wmma::row_major><<<1, 32, 0, stream>>>(a, b, c, d, by_row);
}
extern "C" void s8_16x16x16_01(const int8_t* a, const int8_t* b, const int* c, int* d, bool by_row,
                               cudaStream_t stream) {
    product<16, 16, 16, signed char, wmma::row_major, wmma::col_major><<<1, 32, 0, stream>>>(a, b, c, d, by_row);
}
extern "C" void u8_32x8x16_10(const uint8_t* a, const uint8_t* b, const int* c, int* d, bool by_row,
                              cudaStream_t stream) {
    product<32, 8, 16, unsigned char, wmma::col_major, wmma::row_major><<<1, 32, 0, stream>>>(a, b, c, d, by_row);
}
extern "C" void s8_8x32x16_11(const int8_t* a, const int8_t* b, const int* c, int* d, bool by_row,
                              cudaStream_t stream) {
    product<8, 32, 16, signed char, wmma::col_major, wmma::col_major><<<1, 32, 0, stream>>>(a, b, c, d, by_row);
}
extern "C" void f64_8x8x4_01(const double* a, const double* b, const double* c, double* d, bool by_row,
                             cudaStream_t stream) {
    product<8, 8, 4, double, wmma::row_major, wmma::col_major><<<1, 32, 0, stream>>>(a, b, c, d, by_row);
}
extern "C" void f64_8x8x4_10(const double* a, const double* b, const double* c, double* d, bool by_row,
                             cudaStream_t stream) {
    product<8, 8, 4, double, wmma::col_major, wmma::row_major><<<1, 32, 0, stream>>>(a, b, c, d, by_row);
}
extern "C" void saturating(int* sums, int* sums_of_asm, cudaStream_t stream) {
    saturated<<<1, 32, 0, stream>>>(sums, sums_of_asm);
}
