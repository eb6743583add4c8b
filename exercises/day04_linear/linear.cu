// Linear layer: out = x weight^T + bias, as torch.nn.Linear stores its weight, through tiles in shared memory.
#include <cuda_runtime.h>

constexpr int kTile = 32;

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
__global__ void linear_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ out, int rows, int in_features,
                              int out_features) {
    // TODO: two tiles in shared memory; walk along in_features one tile at a time; one output per thread.
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear(const float* x, const float* weight, const float* bias, float* out, int rows, int in_features,
                       int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    // TODO: launch one block of kTile x kTile threads for each tile of outputs.
}
