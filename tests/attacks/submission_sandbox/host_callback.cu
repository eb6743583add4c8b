// A callback of a stream computes the output.
// Expected finding: host_access.
struct Arguments {
    const float* x;
    float* out;
    int n;
};
static Arguments arguments;
static void CUDART_CB computes(cudaStream_t, cudaError_t, void* data) {
    auto all = static_cast<Arguments*>(data);
    for (int i = 0; i < all->n; ++i) all->out[i] = 2.0f * all->x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    arguments = {x, out, n};
    cudaStreamAddCallback(stream, computes, &arguments, 0);
}
