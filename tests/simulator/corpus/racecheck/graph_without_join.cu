// A graph is captured from two streams. One stream launches a kernel that reads the other stream's results, and only
// then waits for the other stream's event.
// n = 100 elements
__global__ void twice(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * x[i];  // expected finding: between_streams
}
__global__ void add_one(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += 1;  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t) {
    cudaStream_t main, side;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCreate(&main);
    cudaStreamCreate(&side);
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal);
    cudaEventRecord(fork, main);
    cudaStreamWaitEvent(side, fork);
    twice<<<1, 64, 0, side>>>(x, out, n);
    cudaEventRecord(join, side);
#ifdef CLEAN
    cudaStreamWaitEvent(main, join);
    add_one<<<1, 64, 0, main>>>(out, n);
#else
    add_one<<<1, 64, 0, main>>>(out, n);
    cudaStreamWaitEvent(main, join);
#endif
    cudaStreamEndCapture(main, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, main);
    cudaGraphLaunch(executable, main);
    cudaStreamSynchronize(main);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
    cudaStreamDestroy(main);
    cudaStreamDestroy(side);
}
