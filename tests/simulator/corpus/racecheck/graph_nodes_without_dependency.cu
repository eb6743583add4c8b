// Graph nodes are ordered only by dependencies, not by the order in which they are added.
// n = 100 elements
__global__ void twice(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * x[i];  // expected finding: between_streams
}
__global__ void add(float* out, float value, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += value;  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    cudaGraph_t graph, inner;
    cudaGraphExec_t executable;
    cudaGraphNode_t first, empty, second, child;
    float one = 1;
    void* of_twice[] = {&x, &out, &n};
    void* of_add[] = {&out, &one, &n};
    cudaKernelNodeParams params = {};
    params.gridDim = dim3(1, 1, 1);
    params.blockDim = dim3(64, 1, 1);
    cudaGraphCreate(&graph, 0);
    cudaGraphCreate(&inner, 0);
    params.func = (void*)twice;
    params.kernelParams = of_twice;
    cudaGraphAddKernelNode(&first, graph, nullptr, 0, &params);
    cudaGraphAddEmptyNode(&empty, graph, &first, 1);
    params.func = (void*)add;
    params.kernelParams = of_add;
    cudaGraphAddKernelNode(&second, inner, nullptr, 0, &params);
    cudaGraphAddChildGraphNode(&child, graph, nullptr, 0, inner);
#ifdef CLEAN
    cudaGraphAddDependencies(graph, &empty, &child, nullptr, 1);
#endif
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaGraphDestroy(inner);
}
