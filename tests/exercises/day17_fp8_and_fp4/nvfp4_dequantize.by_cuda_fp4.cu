// Each thread converts eight numbers with functions of cuda_fp4.h.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void by_cuda_fp4(const uchar4* q, const __nv_fp8_e4m3* scales, const float* amax, uint4* x,
                            long long eights) {
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= eights) return;
    const uchar4 bytes = q[i];
    const unsigned char all[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    const float scale = float(scales[i / 2]), whole = amax[0] / 2688.0f;
    unsigned out[4];
    for (int b = 0; b < 4; ++b) {
        __nv_fp4x2_e2m1 pair;
        pair.__x = all[b];
        const float2 value = float2(pair);
        const __nv_bfloat162 rounded = __floats2bfloat162_rn((value.x * scale) * whole, (value.y * scale) * whole);
        out[b] = *reinterpret_cast<const unsigned*>(&rounded);
    }
    x[i] = make_uint4(out[0], out[1], out[2], out[3]);
}

extern "C" void nvfp4_dequantize(const unsigned char* q, const unsigned char* scales, const float* amax,
                                 __nv_bfloat16* x, int rows, int columns, cudaStream_t stream) {
    const long long eights = rows * (columns / 8LL);
    if (eights == 0) return;
    by_cuda_fp4<<<static_cast<unsigned>((eights + 127) / 128), 128, 0, stream>>>(
        reinterpret_cast<const uchar4*>(q), reinterpret_cast<const __nv_fp8_e4m3*>(scales), amax,
        reinterpret_cast<uint4*>(x), eights);
}
