// WMMA with every fragment shape, type and layout, loaded from shared or global memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// d = a * b + c for one tile. `ld*` are the leading dimensions; with `shared`, a and b are loaded from shared memory.
template <int M, int N, int K, typename T, typename Element, typename LayoutA, typename LayoutB, typename Sum>
__global__ void product(const Element* a, const Element* b, const Sum* c, Sum* d, int lda, int ldb, int ldc,
                        bool sums_by_row, bool shared) {
    __shared__ __align__(32) Element shared_a[32 * 48], shared_b[32 * 48];
    const Element* from_a = a;
    const Element* from_b = b;
    if (shared) {
        for (int i = threadIdx.x; i < 32 * lda; i += 32) shared_a[i] = a[i];
        for (int i = threadIdx.x; i < 32 * ldb; i += 32) shared_b[i] = b[i];
        __syncwarp();
        from_a = shared_a;
        from_b = shared_b;
    }
    wmma::layout_t layout = sums_by_row ? wmma::mem_row_major : wmma::mem_col_major;
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fragment_a;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fragment_b;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sums;
    wmma::load_matrix_sync(sums, c, ldc, layout);
    wmma::load_matrix_sync(fragment_a, from_a, lda);
    wmma::load_matrix_sync(fragment_b, from_b, ldb);
    wmma::mma_sync(sums, fragment_a, fragment_b, sums);
    wmma::store_matrix_sync(d, sums, ldc, layout);
}

template <int M, int N, int K, typename T, typename Element, typename Sum>
void launch(const Element* a, const Element* b, const Sum* c, Sum* d, int lda, int ldb, int ldc, int layouts,
            bool shared, cudaStream_t stream) {
    typedef wmma::row_major Row;
    typedef wmma::col_major Col;
    bool by_row = layouts & 4;
    switch (layouts & 3) {
        case 0:
            product<M, N, K, T, Element, Row, Row><<<1, 32, 0, stream>>>(a, b, c, d, lda, ldb, ldc, by_row, shared);
            break;
        case 1:
            product<M, N, K, T, Element, Col, Row><<<1, 32, 0, stream>>>(a, b, c, d, lda, ldb, ldc, by_row, shared);
            break;
        case 2:
            product<M, N, K, T, Element, Row, Col><<<1, 32, 0, stream>>>(a, b, c, d, lda, ldb, ldc, by_row, shared);
            break;
        default:
            product<M, N, K, T, Element, Col, Col><<<1, 32, 0, stream>>>(a, b, c, d, lda, ldb, ldc, by_row, shared);
    }
}

// Stores the elements of a 16x16 fragment that each lane holds. The value of each element of the matrix is its index.
__global__ void ownership(const half* numbers, const float* floats, float* a, float* b, float* sums, float* counts) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fragment_a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fragment_b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fragment_sums;
    wmma::load_matrix_sync(fragment_a, numbers, 16);
    wmma::load_matrix_sync(fragment_b, numbers, 16);
    wmma::load_matrix_sync(fragment_sums, floats, 16, wmma::mem_row_major);
    for (int i = 0; i < fragment_a.num_elements; ++i) a[threadIdx.x * 16 + i] = __half2float(fragment_a.x[i]);
    for (int i = 0; i < fragment_b.num_elements; ++i) b[threadIdx.x * 16 + i] = __half2float(fragment_b.x[i]);
    for (int i = 0; i < fragment_sums.num_elements; ++i) sums[threadIdx.x * 8 + i] = fragment_sums.x[i];
    counts[0] = fragment_a.num_elements;
    counts[1] = fragment_sums.num_elements;
    counts[2] = wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major>::num_elements;
    counts[3] = wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major>::num_elements;
    counts[4] = wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major>::num_elements;
    counts[5] = wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major>::num_elements;
    counts[6] = wmma::fragment<wmma::accumulator, 8, 32, 16, half>::num_elements;
}

// A typical epilogue, which scales, adds and clamps fragment elements through x[].
__global__ void epilogue(const half* a, const half* b, half* out) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fragment_a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fragment_b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> rounded;
    wmma::fill_fragment(sums, 1.0f);
    wmma::load_matrix_sync(fragment_a, a, 16);
    wmma::load_matrix_sync(fragment_b, b, 16);
    wmma::mma_sync(sums, fragment_a, fragment_b, sums);
#pragma unroll
    for (int i = 0; i < sums.num_elements; ++i) rounded.x[i] = __float2half(fmaxf(sums.x[i] * 0.5f, 0.0f));
    wmma::store_matrix_sync(out, rounded, 16, wmma::mem_row_major);
}

// Executes one load and one store of a fragment. The test compares their wavefronts (lines marked "counted"). LD is the
// leading dimension of the shared tile.
template <int LD, typename T>
__global__ void shared_loads(const T* in, float* out) {
    __shared__ __align__(32) T tile[16 * LD];
    __shared__ __align__(32) float sums[16 * LD];
    for (int i = threadIdx.x; i < 16 * LD; i += 32) tile[i] = in[i];
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, tile, LD);  // counted: load
    for (int i = 0; i < c.num_elements; ++i) c.x[i] = (float)a.x[i];
    wmma::store_matrix_sync(sums, c, LD, wmma::mem_row_major);  // counted: store
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 32) out[i] = sums[i / 16 * LD + i % 16];
}

__global__ void to_tf32(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = wmma::__float_to_tf32(x[i]);
}

#define ARGUMENTS a, b, c, d, lda, ldb, ldc, layouts, shared, stream

extern "C" void f16_16x16x16(const half* a, const half* b, const float* c, float* d, int lda, int ldb, int ldc,
                             int layouts, bool shared, cudaStream_t stream) {
    launch<16, 16, 16, half>(ARGUMENTS);
}
extern "C" void f16_32x8x16(const half* a, const half* b, const float* c, float* d, int lda, int ldb, int ldc,
                            int layouts, bool shared, cudaStream_t stream) {
    launch<32, 8, 16, half>(ARGUMENTS);
}
extern "C" void f16_8x32x16(const half* a, const half* b, const float* c, float* d, int lda, int ldb, int ldc,
                            int layouts, bool shared, cudaStream_t stream) {
    launch<8, 32, 16, half>(ARGUMENTS);
}
extern "C" void f16_sums_16x16x16(const half* a, const half* b, const half* c, half* d, int lda, int ldb, int ldc,
                                  int layouts, bool shared, cudaStream_t stream) {
    launch<16, 16, 16, half>(ARGUMENTS);
}
extern "C" void f16_sums_8x32x16(const half* a, const half* b, const half* c, half* d, int lda, int ldb, int ldc,
                                 int layouts, bool shared, cudaStream_t stream) {
    launch<8, 32, 16, half>(ARGUMENTS);
}
extern "C" void bf16_16x16x16(const __nv_bfloat16* a, const __nv_bfloat16* b, const float* c, float* d, int lda,
                              int ldb, int ldc, int layouts, bool shared, cudaStream_t stream) {
    launch<16, 16, 16, __nv_bfloat16>(ARGUMENTS);
}
extern "C" void bf16_32x8x16(const __nv_bfloat16* a, const __nv_bfloat16* b, const float* c, float* d, int lda, int ldb,
                             int ldc, int layouts, bool shared, cudaStream_t stream) {
    launch<32, 8, 16, __nv_bfloat16>(ARGUMENTS);
}
extern "C" void bf16_8x32x16(const __nv_bfloat16* a, const __nv_bfloat16* b, const float* c, float* d, int lda, int ldb,
                             int ldc, int layouts, bool shared, cudaStream_t stream) {
    launch<8, 32, 16, __nv_bfloat16>(ARGUMENTS);
}
extern "C" void tf32_16x16x8(const float* a, const float* b, const float* c, float* d, int lda, int ldb, int ldc,
                             int layouts, bool shared, cudaStream_t stream) {
    launch<16, 16, 8, wmma::precision::tf32>(ARGUMENTS);
}
extern "C" void who_owns(const half* numbers, const float* floats, float* a, float* b, float* sums, float* counts,
                         cudaStream_t stream) {
    ownership<<<1, 32, 0, stream>>>(numbers, floats, a, b, sums, counts);
}
extern "C" void scale_and_clamp(const half* a, const half* b, half* out, cudaStream_t stream) {
    epilogue<<<1, 32, 0, stream>>>(a, b, out);
}
extern "C" void loads_f16(const half* in, float* out, int padded, cudaStream_t stream) {
    if (padded) {
        shared_loads<72><<<1, 32, 0, stream>>>(in, out);
    } else {
        shared_loads<64><<<1, 32, 0, stream>>>(in, out);
    }
}
extern "C" void loads_bf16(const __nv_bfloat16* in, float* out, int padded, cudaStream_t stream) {
    if (padded) {
        shared_loads<72><<<1, 32, 0, stream>>>(in, out);
    } else {
        shared_loads<64><<<1, 32, 0, stream>>>(in, out);
    }
}
extern "C" void round_tf32(const float* x, float* out, int n, cudaStream_t stream) {
    to_tf32<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
}
