// Faulty programs, as in tests/simulator/corpus, with a main. The argument chooses the fault.
#include <cstdio>
#include <cstring>

__global__ void past_the_end(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }

__global__ void reverse(float* x) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void add_one(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + 1; }

__global__ void vectors(float* x) { reinterpret_cast<float4*>(x + 1)[threadIdx.x] = make_float4(1, 2, 3, 4); }

__global__ void allocate(float* x) {
    float* own = new float[4];
    own[0] = 1;
    x[0] = own[0];
}

__global__ void scale(float* x, float factor) { x[threadIdx.x] = (x[threadIdx.x] + threadIdx.x) * factor; }

int main(int, char** argv) {
    auto is = [&](const char* name) { return !strcmp(argv[1], name); };
    float *x, *y, host[64] = {};
    cudaMalloc(&x, 64 * sizeof(float));
    cudaMalloc(&y, 64 * sizeof(float));
    if (!is("uninitialized")) cudaMemset(x, 0, 64 * sizeof(float));
    if (is("bounds")) past_the_end<<<2, 64>>>(x);
    if (is("race")) reverse<<<1, 64>>>(x);
    if (is("uninitialized")) add_one<<<1, 64>>>(x, y);
    if (is("misaligned")) vectors<<<1, 8>>>(x);
    if (is("leak")) allocate<<<1, 1>>>(x);
    if (is("host")) x[3] = 1;
    if (is("streams")) {
        cudaStream_t first, second;
        cudaStreamCreate(&first);
        cudaStreamCreate(&second);
        scale<<<1, 64, 0, first>>>(x, 2);
        scale<<<1, 64, 0, second>>>(x, 3);
    }
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    if (is("leak")) return 0;
    cudaFree(x);
    if (is("free")) cudaFree(x);
    cudaFree(y);
}
