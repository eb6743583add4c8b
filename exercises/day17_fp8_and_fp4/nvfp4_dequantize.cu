// From NVFP4 to bf16: x = (e2m1 * scale) * (amax / 2688).
//
//   q: [rows, columns / 2], two patterns per byte     scales: [rows, columns / 16], e4m3     amax: [1]
//   x: [rows, columns]
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

// TODO: a kernel in which a lane turns four bytes of q into 16 bytes of x
// TODO:   - e2m1 to float: a table of 16, cuda_fp4.h, or a shift into the bits of a half
// TODO:   - the scale of its group, by __nv_fp8_e4m3; the products in the order of the formula

extern "C" void nvfp4_dequantize(const unsigned char* q, const unsigned char* scales, const float* amax,
                                 __nv_bfloat16* x, int rows, int columns, cudaStream_t stream) {
    if (rows == 0 || columns == 0) return;
    // TODO: launch it.
}
