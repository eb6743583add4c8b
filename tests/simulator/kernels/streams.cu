// Streams, events and graphs. Each launcher writes the return values of calls to `out`.
#include <cuda_runtime.h>

__global__ void add_kernel(int* out, int value) { *out += value; }
__global__ void add_from_kernel(int* out, const int* value) { *out += *value; }

// Queries streams and events. Work is not complete until something waits for it.
extern "C" void queries(int* out, cudaStream_t stream) {
    cudaStream_t mine;
    cudaEvent_t start, end;
    float milliseconds = -1;
    int i = 0;
    cudaStreamCreate(&mine);
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    out[i++] = cudaStreamQuery(mine);
    out[i++] = cudaEventQuery(end);  // this event was never recorded
    cudaEventRecord(start, mine);
    add_kernel<<<1, 1, 0, mine>>>(out + 20, 1);
    cudaEventRecord(end, mine);
    out[i++] = cudaStreamQuery(mine);
    out[i++] = cudaEventElapsedTime(&milliseconds, start, end);
    out[i++] = cudaGetLastError();
    out[i++] = cudaEventQuery(end);
    out[i++] = cudaEventQuery(end);
    out[i++] = cudaEventElapsedTime(&milliseconds, start, end);
    out[i++] = milliseconds >= 0;
    out[i++] = cudaStreamQuery(mine);
    add_kernel<<<1, 1, 0, mine>>>(out + 20, 1);
    out[i++] = cudaStreamQuery(mine);
    out[i++] = cudaStreamSynchronize(mine);
    out[i++] = cudaStreamQuery(mine);
    add_kernel<<<1, 1, 0, mine>>>(out + 20, 1);
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    cudaStreamDestroy(mine);
    out[i++] = cudaStreamSynchronize(mine);
    add_kernel<<<1, 1, 0, mine>>>(out + 20, 1);
    out[i++] = cudaGetLastError();
}

static void call_cuda(void* data) {
    int* errors = static_cast<int*>(data);
    add_kernel<<<1, 1>>>(errors, 1);
    errors[0] = cudaGetLastError();
    errors[1] = cudaDeviceSynchronize();
    errors[2] = cudaGetLastError();
}

// Tests that CUDA refuses calls from a host function in a stream.
extern "C" void host_function(int* out, cudaStream_t stream) {
    int errors[3] = {-1, -1, -1};
    cudaLaunchHostFunc(stream, call_cuda, errors);
    out[4] = cudaStreamSynchronize(stream);
    for (int i = 0; i < 3; ++i) out[i] = errors[i];
}

static void set_five(void* data) { *static_cast<int*>(data) = 5; }

// Tests that a graph stores kernel arguments by value, and reads memory behind pointers only when it runs.
extern "C" void replay(int* out, int* total, cudaStream_t) {
    cudaStream_t mine;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCaptureStatus before, during, after;
    int *device, *pinned, i = 0;
    size_t nodes = 0;
    cudaStreamCreate(&mine);
    cudaMalloc(&device, 2 * sizeof(int));
    cudaMallocHost(&pinned, sizeof(int));
    *pinned = 100;
    int by_value = 1;
    cudaStreamIsCapturing(mine, &before);
    out[i++] = cudaStreamBeginCapture(mine, cudaStreamCaptureModeGlobal);
    cudaStreamIsCapturing(mine, &during);
    cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, mine);
    cudaMemsetAsync(device + 1, 0, sizeof(int), mine);
    add_from_kernel<<<1, 1, 0, mine>>>(device + 1, device);
    add_kernel<<<1, 1, 0, mine>>>(device + 1, by_value);
    add_from_kernel<<<1, 1, 0, mine>>>(total, device + 1);
    by_value = 1000;
    cudaLaunchHostFunc(mine, set_five, pinned);
    out[i++] = cudaStreamEndCapture(mine, &graph);
    cudaStreamIsCapturing(mine, &after);
    out[i++] = before == cudaStreamCaptureStatusNone && during == cudaStreamCaptureStatusActive && after == before;
    out[i++] = cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess && nodes == 6;
    out[i++] = *pinned;  // still unchanged, because the capture runs nothing
    out[i++] = cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0);
    out[i++] = cudaGraphDestroy(graph);
    out[i++] = cudaGraphUpload(executable, mine);
    out[i++] = cudaGraphLaunch(executable, mine);  // the graph adds 100 + 1 to *total
    cudaStreamSynchronize(mine);
    out[i++] = *pinned;
    *pinned = 10;
    by_value = 2000;
    out[i++] = cudaGraphLaunch(executable, mine);  // the graph adds 10 + 1 to *total
    cudaStreamSynchronize(mine);
    out[i++] = cudaGraphExecDestroy(executable);
    out[i++] = cudaGraphLaunch(executable, mine);
    out[i++] = cudaGraphDestroy(graph);
    out[i++] = cudaGetLastError();
    cudaFree(device);
    cudaFreeHost(pinned);
    cudaStreamDestroy(mine);
}

static void count_calls(void* data) { ++*static_cast<int*>(data); }

// Builds a graph node by node, changes it, copies it, and adds it to another graph as a child.
extern "C" void nodes(int* out, int* total, cudaStream_t) {
    cudaStream_t mine;
    cudaGraph_t graph, clone, outer, inside;
    cudaGraphExec_t executable;
    cudaGraphNode_t fill, copy, both[2], kernel, empty, host, in_clone, child, found[8];
    cudaGraphNodeType type;
    cudaGraphExecUpdateResultInfo update;
    cudaMemsetParams fill_params = {};
    cudaKernelNodeParams params = {};
    cudaMemcpy3DParms copy_params = {};
    int *device, i = 0, value = 3, calls = 0, source[6] = {1, 2, 3, 4, 5, 6};
    size_t count = 0, edges = 0, roots = 0;
    cudaStreamCreate(&mine);
    cudaMalloc(&device, 12 * sizeof(int));
    fill_params.dst = device;
    fill_params.elementSize = 2;
    fill_params.value = 0x10101;  // only the lower two bytes are used
    fill_params.width = 12;
    fill_params.height = 1;
    copy_params.srcPtr = make_cudaPitchedPtr(source, 2 * sizeof(int), 2, 1);
    copy_params.dstPtr = make_cudaPitchedPtr(device + 6, 2 * sizeof(int), 2, 1);
    copy_params.extent = make_cudaExtent(2 * sizeof(int), 1, 3);
    copy_params.kind = cudaMemcpyHostToDevice;
    void* arguments[] = {&total, &value};
    params.func = (void*)add_kernel;
    params.gridDim = dim3(1, 1, 1);
    params.blockDim = dim3(1, 1, 1);
    params.kernelParams = arguments;
    cudaHostNodeParams counts = {count_calls, &calls};

    out[i++] = cudaGraphCreate(&graph, 0);
    out[i++] = cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_params);
    out[i++] = cudaGraphAddMemcpyNode(&copy, graph, nullptr, 0, &copy_params);
    both[0] = fill;
    both[1] = copy;
    out[i++] = cudaGraphAddKernelNode(&kernel, graph, both, 2, &params);
    out[i++] = cudaGraphAddEmptyNode(&empty, graph, nullptr, 0);
    out[i++] = cudaGraphAddHostNode(&host, graph, &empty, 1, &counts);
    out[i++] = cudaGraphAddDependencies(graph, &kernel, &empty, nullptr, 1);  // adds a dependency on an earlier node
    value = 1000;  // too late to change the node's argument, which was copied
    cudaGraphGetNodes(graph, nullptr, &count);
    cudaGraphGetRootNodes(graph, nullptr, &roots);
    cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
    out[i++] = count == 5 && roots == 2 && edges == 4;
    count = 8;
    out[i++] = cudaGraphGetNodes(graph, found, &count);
    out[i++] = count == 5 && found[0] == fill && found[2] == kernel && !found[5];
    count = 8;
    out[i++] = cudaGraphNodeGetDependencies(kernel, found, nullptr, &count);
    out[i++] = count == 2 && found[0] == fill && found[1] == copy;
    count = 8;
    out[i++] = cudaGraphNodeGetDependentNodes(kernel, found, nullptr, &count);
    out[i++] = count == 1 && found[0] == empty;
    out[i++] = cudaGraphNodeGetType(kernel, &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;

    out[i++] = cudaGraphInstantiate(&executable, graph, 0);
    out[i++] = cudaGraphLaunch(executable, mine);  // the graph's kernel adds 3
    cudaStreamSynchronize(mine);
    int back[12];
    cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost);
    out[i++] = back[0] == 0x01010101 && back[5] == back[0] && back[6] == 1 && back[11] == 6;
    value = 20;
    out[i++] = cudaGraphExecKernelNodeSetParams(executable, kernel, &params);
    out[i++] = cudaGraphLaunch(executable, mine);  // the graph's kernel adds 20
    cudaStreamSynchronize(mine);
    out[i++] = cudaGraphClone(&clone, graph);
    out[i++] = cudaGraphNodeFindInClone(&in_clone, kernel, clone);
    value = 100;
    out[i++] = cudaGraphKernelNodeSetParams(in_clone, &params);
    out[i++] =
        cudaGraphExecUpdate(executable, clone, &update) == cudaSuccess && update.result == cudaGraphExecUpdateSuccess;
    out[i++] = cudaGraphLaunch(executable, mine);  // the graph's kernel adds 100
    cudaStreamSynchronize(mine);
    cudaGraphExecDestroy(executable);

    cudaGraphCreate(&outer, 0);
    out[i++] = cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph);  // its kernel adds 3
    out[i++] = cudaGraphAddChildGraphNode(&child, outer, &child, 1, clone);   // its kernel adds 100
    out[i++] = cudaGraphChildGraphNodeGetGraph(child, &inside);
    count = 0;
    cudaGraphGetNodes(inside, nullptr, &count);
    out[i++] = count == 5;
    out[i++] = cudaGraphInstantiate(&executable, outer, 0);
    out[i++] = cudaGraphLaunch(executable, mine);
    cudaStreamSynchronize(mine);
    out[i++] = calls;

    // Makes calls that CUDA refuses.
    out[i++] = cudaGraphExecUpdate(executable, graph, &update);
    out[i++] = update.result;
    out[i++] = cudaGraphAddEmptyNode(&empty, graph, &in_clone, 1);
    out[i++] = cudaGraphAddDependencies(graph, &fill, &kernel, nullptr, 1);  // refused, because the dependency exists
    params.func = nullptr;
    out[i++] = cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &params);
    out[i++] = cudaGraphMemsetNodeSetParams(copy, &fill_params);
    fill_params.elementSize = 3;
    out[i++] = cudaGraphMemsetNodeSetParams(fill, &fill_params);
    out[i++] = cudaGraphRemoveDependencies(graph, &copy, &fill, nullptr, 1);
    out[i++] = cudaGraphDestroyNode(fill);
    out[i++] = cudaGraphAddDependencies(clone, &in_clone, &in_clone, nullptr, 1);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaGraphDestroy(clone);
    cudaGraphDestroy(outer);
    cudaFree(device);
    cudaStreamDestroy(mine);
}

struct Streams {
    cudaStream_t main, side, free;
    cudaEvent_t event, outside;
    cudaGraph_t graph;
    Streams() : graph(nullptr) {
        cudaStreamCreate(&main);
        cudaStreamCreate(&side);
        cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking);
        cudaEventCreate(&event);
        cudaEventCreate(&outside);
        cudaEventRecord(outside, free);
    }
    ~Streams() {
        cudaStreamDestroy(main);
        cudaStreamDestroy(side);
        cudaStreamDestroy(free);
        cudaEventDestroy(event);
        cudaEventDestroy(outside);
        cudaGetLastError();
    }
    void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) { cudaStreamBeginCapture(main, mode); }
    int end() { return cudaStreamEndCapture(main, &graph); }
};

// Makes calls that CUDA refuses during a capture. Writes their error, then the error when the capture ends.
extern "C" void capture_errors(int* out, cudaStream_t stream) {
    Streams s;
    int* memory;
    int i = 0;
    auto then_end = [&](int error) {
        out[i++] = error;
        out[i++] = s.end();
        cudaGetLastError();
    };
    out[i++] = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    out[i++] = s.end();
    s.begin();
    out[i++] = cudaStreamBeginCapture(s.main, cudaStreamCaptureModeGlobal);
    then_end(cudaDeviceSynchronize());
    s.begin();
    then_end(cudaStreamSynchronize(s.main));
    s.begin();
    then_end(cudaStreamQuery(s.main));
    s.begin();
    then_end(cudaMalloc(&memory, 4));
    s.begin(cudaStreamCaptureModeThreadLocal);
    then_end(cudaMalloc(&memory, 4));
    s.begin(cudaStreamCaptureModeRelaxed);
    then_end(cudaMalloc(&memory, 4));
    cudaFree(memory);
    s.begin(cudaStreamCaptureModeRelaxed);
    then_end(cudaMemsetAsync(out + 40, 0, 4, stream));
    s.begin(cudaStreamCaptureModeRelaxed);
    then_end(cudaMemcpy(out + 40, out + 41, 4, cudaMemcpyDeviceToDevice));
    s.begin();
    cudaEventRecord(s.event, s.main);
    then_end(cudaEventSynchronize(s.event));
    s.begin();
    cudaEventRecord(s.event, s.main);
    then_end(cudaEventQuery(s.event));
    s.begin();
    then_end(cudaStreamWaitEvent(s.main, s.outside));
    s.begin();
    cudaEventRecord(s.event, s.main);
    cudaStreamWaitEvent(s.side, s.event);
    then_end(cudaStreamEndCapture(s.side, &s.graph));
    s.begin();
    cudaStreamBeginCapture(s.side, cudaStreamCaptureModeGlobal);
    cudaEventRecord(s.event, s.side);
    then_end(cudaStreamWaitEvent(s.main, s.event));
    out[i++] = cudaStreamEndCapture(s.side, &s.graph);
    s.begin();
    cudaEventRecord(s.event, s.main);
    cudaStreamWaitEvent(s.side, s.event);
    add_kernel<<<1, 1, 0, s.side>>>(out + 41, 1);
    out[i++] = s.end();  // fails, because the side stream was not joined
    s.begin();
    cudaDeviceSynchronize();
    add_kernel<<<1, 1, 0, s.main>>>(out + 41, 1);
    cudaGetLastError();
    cudaStreamCaptureStatus status;
    cudaStreamIsCapturing(s.main, &status);
    out[i++] = status;
    then_end(cudaEventRecord(s.event, s.main));
    s.begin();
    then_end(cudaStreamIsCapturing(stream, &status));
    out[i++] = i;
}

// Captures an allocation from a memory pool, which becomes a node of the graph.
extern "C" void captured_allocation(int* out, cudaStream_t) {
    Streams s;
    int* memory;
    s.begin();
    out[0] = cudaMallocAsync(&memory, 4, s.main);
    out[1] = s.end();
}
