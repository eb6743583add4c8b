// Argmax of a few very wide rows, for f32, f16 and bf16: several blocks share a row. The lowest column among equal
// maxima, and the first NaN if any.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// TODO: pack value and column into a 64-bit key: a better element has a larger key. The value decides first.

// TODO: a kernel, a template over the dtype T, with `splits` blocks per row. Each block writes its best key to partial.
// Then a second kernel that finds the best of each row's parts.

template <typename T>
void launch(const T* x, int* out, unsigned long long* partial, int rows, int cols, int splits, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    // TODO: launch both.
}

// x: [rows, cols]   out: [rows]   partial: [rows, splits], the workspace
extern "C" void vocabulary_argmax_f32(const float* x, int* out, unsigned long long* partial, int rows, int cols,
                                      int splits, cudaStream_t stream) {
    launch(x, out, partial, rows, cols, splits, stream);
}

extern "C" void vocabulary_argmax_f16(const __half* x, int* out, unsigned long long* partial, int rows, int cols,
                                      int splits, cudaStream_t stream) {
    launch(x, out, partial, rows, cols, splits, stream);
}

extern "C" void vocabulary_argmax_bf16(const __nv_bfloat16* x, int* out, unsigned long long* partial, int rows,
                                       int cols, int splits, cudaStream_t stream) {
    launch(x, out, partial, rows, cols, splits, stream);
}
