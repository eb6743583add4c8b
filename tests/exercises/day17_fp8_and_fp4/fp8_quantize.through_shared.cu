// A block of 128 threads quantizes eight groups of a row. Atomics in shared memory find the largest magnitude of each
// group.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void __launch_bounds__(128)
    through_shared(const __nv_bfloat16* x, unsigned char* q, float* scales, int columns) {
    __shared__ int largest[8];
    const int groups = (columns + 127) / 128, column = blockIdx.x * 1024 + 8 * threadIdx.x;
    const size_t row = blockIdx.y;
    if (threadIdx.x < 8) largest[threadIdx.x] = __float_as_int(1e-10f);
    __syncthreads();

    union {
        uint4 vector;
        __nv_bfloat16 number[8];
    } own = {make_uint4(0, 0, 0, 0)};
    if (column < columns) own.vector = *reinterpret_cast<const uint4*>(x + row * columns + column);
    float most = 0.0f;
    for (int i = 0; i < 8; ++i) {
        const float size = fabsf(__bfloat162float(own.number[i]));
        if (isfinite(size)) most = fmaxf(most, size);
    }
    atomicMax(largest + threadIdx.x / 16,
              __float_as_int(most));  // nonnegative floats have the same order as their bits
    __syncthreads();

    const float amax = __int_as_float(largest[threadIdx.x / 16]);
    if (column >= columns) return;
    unsigned words[2] = {};
    for (int i = 0; i < 8; ++i) {
        const __nv_fp8_e4m3 value(__bfloat162float(own.number[i]) * (448.0f / amax));
        words[i / 4] |= static_cast<unsigned>(value.__x) << (8 * (i % 4));
    }
    *reinterpret_cast<uint2*>(q + row * columns + column) = make_uint2(words[0], words[1]);
    if (threadIdx.x % 16 == 0) scales[row * groups + column / 128] = amax / 448.0f;
}

extern "C" void fp8_quantize(const __nv_bfloat16* x, unsigned char* q, float* scales, int rows, int columns,
                             cudaStream_t stream) {
    if (rows == 0 || columns == 0) return;
    const int most_rows = 65535;  // maximum of gridDim.y
    for (int first = 0; first < rows; first += most_rows) {
        const size_t done = first;
        through_shared<<<dim3((columns + 1023) / 1024, min(most_rows, rows - first)), 128, 0, stream>>>(
            x + done * columns, q + done * columns, scales + done * ((columns + 127) / 128), columns);
    }
}
