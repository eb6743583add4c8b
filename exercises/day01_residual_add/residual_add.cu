// Residual add: out = x + residual, for f32, f16 and bf16, any length and any alignment.
//
// TODO: `grader hint day01_residual_add/residual_add` shows the task and a hint; `grader check residual_add` grades it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

// TODO: a kernel template over the dtype T. Begin with one element per thread and its guard (version 2 of the lesson),
// TODO: until the stage "correct" passes. Then let each thread move 16 bytes per access (version 4). Handle
// TODO: tensors that do not start at a multiple of 16 bytes, and lengths that are not a multiple of the vector.

template <typename T>
void launch(const T* x, const T* residual, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;  // a launch with 0 blocks is an error
    // TODO: how many blocks? Start the kernel on `stream`.
}

extern "C" void residual_add_f32(const float* x, const float* residual, float* out, long long n, cudaStream_t stream) {
    launch(x, residual, out, n, stream);
}

extern "C" void residual_add_f16(const __half* x, const __half* residual, __half* out, long long n,
                                 cudaStream_t stream) {
    launch(x, residual, out, n, stream);
}

extern "C" void residual_add_bf16(const __nv_bfloat16* x, const __nv_bfloat16* residual, __nv_bfloat16* out,
                                  long long n, cudaStream_t stream) {
    launch(x, residual, out, n, stream);
}
