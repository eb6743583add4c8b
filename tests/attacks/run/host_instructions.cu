// Stores with a host instruction that the compiler does not instrument.
// Expected: the build is refused.
#if defined(__x86_64__)
#include <emmintrin.h>
#define STORE(place, value) _mm_stream_si32(reinterpret_cast<int*>(place), __float_as_int(value))
#else
#include <arm_neon.h>
#define STORE(place, value) vst1q_lane_f32(place, vdupq_n_f32(value), 0)
#endif

__global__ void kernel(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    STORE(&shared[threadIdx.x / 2], float(threadIdx.x));
    if (i < n) out[i] = 2.0f * x[i];
}
