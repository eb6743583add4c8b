// Starts kernels and copies in several streams. Streams, events, synchronization and graphs order them.
// n = 1000 elements
__global__ void add(const float* from, float* to, int n, float value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] + value;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    const size_t bytes = n * sizeof(float);
    const int blocks = (n + 127) / 128;
    cudaStream_t one, two;
    cudaEvent_t event, join;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    float *a, *b, *host;
    cudaStreamCreate(&one);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    cudaMallocHost(&host, bytes);

    // A blocking stream and the default stream synchronize with each other.
    cudaMallocAsync(&a, bytes, stream);
    add<<<blocks, 128, 0, one>>>(x, a, n, 1);
    cudaMallocAsync(&b, bytes, stream);
    add<<<blocks, 128, 0, stream>>>(a, b, n, 1);
    add<<<blocks, 128, 0, one>>>(b, a, n, 1);

    // Events order two streams through a third one.
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(two, event, 0);
    cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, two);
    cudaMemcpyAsync(host, b, bytes, cudaMemcpyDeviceToHost, two);
    cudaEventRecord(event, two);
    cudaEventSynchronize(event);
    host[0] += 0;
    cudaMemcpyAsync(b, host, bytes, cudaMemcpyHostToDevice, two);

    // Two kernels read in two streams, and a writer waits for both. Two streams are captured into one graph.
    cudaStreamBeginCapture(two, cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(event, two);
    cudaStreamWaitEvent(one, event, 0);
    add<<<blocks, 128, 0, one>>>(b, a, n, 1);
    add<<<blocks, 128, 0, two>>>(b, out, n, 1);
    cudaEventRecord(join, one);
    cudaStreamWaitEvent(two, join, 0);
    cudaMemsetAsync(b, 0, bytes, two);
    add<<<blocks, 128, 0, two>>>(a, b, n, 1);
    cudaStreamEndCapture(two, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaStreamSynchronize(one);
    cudaGraphLaunch(executable, two);
    cudaGraphLaunch(executable, two);

    while (cudaStreamQuery(two) == cudaErrorNotReady) {
    }
    cudaFreeAsync(a, one);
    cudaFreeAsync(b, stream);
    cudaFreeHost(host);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaEventDestroy(event);
    cudaEventDestroy(join);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
}
