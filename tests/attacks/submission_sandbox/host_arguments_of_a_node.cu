// The launcher gives a kernel node arguments that lie in device memory, so the host would read that memory.
// Expected finding: host_access.
__global__ void kernel(float first, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 0 * first;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    void* arguments[] = {const_cast<float*>(x), &x, &out, &n};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void*)kernel;
    parameters.gridDim = dim3((n + 63) / 64);
    parameters.blockDim = dim3(64);
    parameters.kernelParams = arguments;
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t executable;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
}
