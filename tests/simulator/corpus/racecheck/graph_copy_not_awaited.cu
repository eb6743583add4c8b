// A kernel node lacks the dependency on the copy node whose output it reads.
// n = 64 elements
__global__ void add(const float* x, const float* y, float* out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t copy, before[2];
    float *a, *b;
    cudaMalloc(&a, n * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    cudaMemsetParams fill = {};
    fill.dst = b;
    fill.value = 0x3f800000;
    fill.elementSize = 4;
    fill.width = n;
    fill.height = 1;
    void* arguments[] = {&a, &b, &out, &n};
    cudaKernelNodeParams params = {};
    params.func = (void*)add;
    params.gridDim = dim3(1, 1, 1);
    params.blockDim = dim3(64, 1, 1);
    params.kernelParams = arguments;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddMemsetNode(&before[0], graph, nullptr, 0, &fill);
    cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, a, x, n * 4, cudaMemcpyDeviceToDevice);  // expected finding: between_streams
    before[1] = copy;
#ifdef CLEAN
    cudaGraphAddKernelNode(&copy, graph, before, 2, &params);
#else
    cudaGraphAddKernelNode(&copy, graph, before, 1, &params);
#endif
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaFree(a);
    cudaFree(b);
}
