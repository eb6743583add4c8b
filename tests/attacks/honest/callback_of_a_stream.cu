// A callback of a stream counts in host memory.
static void CUDART_CB finished(cudaStream_t, cudaError_t status, void* data) {
    *static_cast<int*>(data) += status == cudaSuccess;
}
static int calls;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaStreamAddCallback(stream, finished, &calls, 0);
}
