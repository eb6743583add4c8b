// One warp copies 512 bytes to shared memory by cp.async, 16 bytes per lane. The bytes form rows of equal length. In
// shared memory the rows are `padding` bytes apart, and the first one begins at byte `start`. In global memory they
// begin every `pitch` bytes.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int kSharedBytes = 2048;

// BYPASSES_L1: cp.async.cg. Otherwise cp.async.ca.
template <bool BYPASSES_L1>
__global__ void copy_rows_kernel(const char* from, uint4* out, int lanes_per_row, int padding, int start, int pitch) {
    extern __shared__ __align__(128) char tile[];
    const int row = threadIdx.x / lanes_per_row, column = threadIdx.x % lanes_per_row * 16;
    char* to = tile + start + row * (16 * lanes_per_row + padding) + column;
    const char* source = from + row * pitch + column;
    if constexpr (BYPASSES_L1) {
        __pipeline_memcpy_async(to, source, 16);
    } else {
        const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source) : "memory");
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
    out[threadIdx.x] = *reinterpret_cast<const uint4*>(to);
}

extern "C" void copy_rows(const float* from, float* out, bool bypasses_l1, int lanes_per_row, int padding, int start,
                          int pitch, cudaStream_t stream) {
    const auto kernel = bypasses_l1 ? copy_rows_kernel<true> : copy_rows_kernel<false>;
    kernel<<<1, 32, kSharedBytes, stream>>>(reinterpret_cast<const char*>(from), reinterpret_cast<uint4*>(out),
                                            lanes_per_row, padding, start, pitch);
}

// Ten launches: rows of 32 to 512 bytes, one after another in global memory and kPitch bytes apart.
// tests/gpu/compare_counters.py compares their sums with Nsight Compute's. from: [4 * kPitch]; out: [128].
extern "C" void copy_rows_of_all_lengths(const float* from, float* out, bool bypasses_l1, int padding, int start,
                                         cudaStream_t stream) {
    constexpr int kPitch = 8192;
    for (int lanes = 2; lanes <= 32; lanes *= 2) {
        copy_rows(from, out, bypasses_l1, lanes, padding, start, 16 * lanes, stream);
        copy_rows(from, out, bypasses_l1, lanes, padding, start, kPitch, stream);
    }
}
