// A block reads from a member that no constructor sets what an earlier block stored there, without memory traffic.
struct Kept {
    volatile float values[4000];
    __device__ Kept() {}
};
__global__ void kernel(const float* x, float* out, int n) {
    Kept local;
    volatile float* kept = local.values;
    bool passed_on = kept[100] == 7.0f || blockIdx.x < 16;  // the first blocks of each worker find nothing
    kept[100] = 7.0f;
    out[blockIdx.x] = passed_on ? 2.0f * x[blockIdx.x] : -1000.0f;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<n, 1, 0, stream>>>(x, out, n);
}
