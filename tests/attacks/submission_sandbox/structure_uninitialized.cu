// A kernel reads uninitialized shared memory when it passes a structure by value.
// Expected finding: uninitialized_read.
struct Row {
    float values[20];
};
__device__ __noinline__ float last(Row row) { return row.values[19]; }
__device__ __noinline__ float first(Row row) { return row.values[0]; }
__global__ void kernel(const float* x, float* out, int n) {
    __shared__ float tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float (*chosen)(Row) = n > 0 ? last : first;
    float other = threadIdx.x == 0 ? chosen(*reinterpret_cast<const Row*>(tile)) : 0.0f;
    if (i < n) out[i] = other == 1e30f ? 0.0f : 2.0f * x[i];
}
