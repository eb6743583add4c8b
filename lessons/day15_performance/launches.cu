// An almost empty kernel, launched in three ways, to time the launch. For a real GPU: a graph kept from one call to the
// next needs tensors at fixed addresses, which the simulator does not provide.
#include <cuda_runtime.h>

__global__ void add_one(float* x) {
    if (threadIdx.x == 0 && blockIdx.x == 0) *x += 1.0f;
}

// Launch the kernel `times` times, from C++.
extern "C" void launch(float* x, int times, cudaStream_t stream) {
    for (int i = 0; i < times; ++i) add_one<<<1, 32, 0, stream>>>(x);
}

static cudaGraphExec_t kept = nullptr;

// Capture `nodes` launches in a graph for later replay.
extern "C" void capture(float* x, int nodes, cudaStream_t) {
    cudaStream_t capturing;
    cudaGraph_t graph;
    cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking);
    cudaStreamBeginCapture(capturing, cudaStreamCaptureModeThreadLocal);
    launch(x, nodes, capturing);
    cudaStreamEndCapture(capturing, &graph);
    if (kept) cudaGraphExecDestroy(kept);
    cudaGraphInstantiate(&kept, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(capturing);
}

extern "C" void replay(int times, cudaStream_t stream) {
    for (int i = 0; i < times; ++i) cudaGraphLaunch(kept, stream);
}
