// Features of the runtime besides launches, one small kernel each: streams and events, graphs, grid-wide barriers,
// memory pools, managed memory.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void scale(const float* x, float* out, int n, float by) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * by;
}

__global__ void add(const float* a, const float* b, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

// out = 2 x + 3 x with two independent terms: fork, two branches, join. a and b are working memory.
extern "C" void two_branches(const float* x, float* a, float* b, float* out, int n, bool joined, cudaStream_t stream) {
    cudaStream_t side;
    cudaEvent_t fork, join;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    const int blocks = (n + 127) / 128;
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(side, fork, 0);  // wait until x is complete
    scale<<<blocks, 128, 0, stream>>>(x, a, n, 2.0f);
    scale<<<blocks, 128, 0, side>>>(x, b, n, 3.0f);
    cudaEventRecord(join, side);
    if (joined) cudaStreamWaitEvent(stream, join, 0);  // wait until b is complete
    add<<<blocks, 128, 0, stream>>>(a, b, out, n);
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
    cudaStreamDestroy(side);
}

__global__ void put(int* out, const int* place, int value) { out[*place] = value; }
__global__ void put_at(int* out, int place, int value) { out[place] = value; }
__global__ void step(int* place) { ++*place; }

// A graph of one step, launched `steps` times; each launch marks the next element of out. The position is a kernel
// argument, or a number in device memory.
extern "C" void marks(int* out, int* place, int steps, bool on_device, cudaStream_t stream) {
    cudaStream_t capturing;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking);
    int by_value = 0;
    cudaStreamBeginCapture(capturing, cudaStreamCaptureModeThreadLocal);
    if (on_device) {
        put<<<1, 1, 0, capturing>>>(out, place, 1);
        step<<<1, 1, 0, capturing>>>(place);
    } else {
        put_at<<<1, 1, 0, capturing>>>(out, by_value, 1);
    }
    cudaStreamEndCapture(capturing, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    for (int i = 0; i < steps; ++i, ++by_value) cudaGraphLaunch(executable, stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(capturing);
}

// Each block reads the values of the next block, after a barrier of the whole grid.
__global__ void pass_on(int* values, int* out) {
    const cg::grid_group grid = cg::this_grid();
    const auto i = grid.thread_rank();
    values[i] = static_cast<int>(i);
    grid.sync();
    out[i] = values[(i + blockDim.x) % grid.size()];
}

extern "C" void meet(int* values, int* out, int blocks, int threads, cudaStream_t stream) {
    void* arguments[] = {&values, &out};
    cudaLaunchCooperativeKernel((void*)pass_on, dim3(blocks), dim3(threads), arguments, 0, stream);
}

// out = 6 x through working memory from the memory pool, or from cudaMalloc. The pool keeps freed memory and reuses it
// without calling the driver.
extern "C" void with_scratch(const float* x, float* out, int n, bool pool, cudaStream_t stream) {
    float* scratch = nullptr;
    const size_t bytes = static_cast<size_t>(n) * sizeof(float);
    if (pool)
        cudaMallocAsync(&scratch, bytes, stream);
    else
        cudaMalloc(&scratch, bytes);
    scale<<<(n + 127) / 128, 128, 0, stream>>>(x, scratch, n, 2.0f);
    scale<<<(n + 127) / 128, 128, 0, stream>>>(scratch, out, n, 3.0f);
    if (pool)
        cudaFreeAsync(scratch, stream);  // freed in stream order, after the kernels
    else
        cudaFree(scratch);  // synchronizes the device
}

// out[i] = 2 i: the host writes to memory that the kernel reads. There are no copies; pages migrate when they are
// accessed.
extern "C" void shared_with_the_host(float* out, int n, bool prefetch, cudaStream_t stream) {
    float* both = nullptr;
    cudaMallocManaged(&both, static_cast<size_t>(n) * sizeof(float));
    for (int i = 0; i < n; ++i) both[i] = static_cast<float>(i);
    int device = 0;
    cudaGetDevice(&device);
    const cudaMemLocation here = {cudaMemLocationTypeDevice, device};
    if (prefetch) cudaMemPrefetchAsync(both, static_cast<size_t>(n) * sizeof(float), here, 0, stream);
    scale<<<(n + 127) / 128, 128, 0, stream>>>(both, out, n, 2.0f);
    cudaStreamSynchronize(stream);  // before the host accesses or frees the memory
    cudaFree(both);
}
