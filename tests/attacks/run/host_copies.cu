// Copies its input to the host with a C library function, computes there, and stores the result with a kernel.
#include <cstring>

struct Pack {
    float value[512];
};

__global__ void store(Pack pack, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = pack.value[i % 512];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    for (int start = 0; start < n; start += 512) {
        Pack pack;
        int count = n - start < 512 ? n - start : 512;
        memcpy(pack.value, x + start, sizeof(float) * count);
        for (int i = 0; i < count; ++i) pack.value[i] *= 2.0f;
        store<<<(count + 63) / 64, 64, 0, stream>>>(pack, out + start, count);
    }
}
