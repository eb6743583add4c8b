// Threads pass structures by value while other threads write them, without a barrier between.
// Expected finding: within_block.
struct Row {
    float values[20];
};
__device__ __noinline__ float last(Row row) { return row.values[19]; }
__device__ __noinline__ float first(Row row) { return row.values[0]; }
__global__ void kernel(const float* x, float* out, int n) {
    __shared__ float tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = tile[threadIdx.x + 64] = i < n ? x[i] : 0.0f;
    float (*chosen)(Row) = n > 0 ? last : first;
    float other = chosen(*reinterpret_cast<const Row*>(tile + (threadIdx.x + 32) % 64));
    if (i < n) out[i] = other == 1e30f ? 0.0f : 2.0f * x[i];
}
