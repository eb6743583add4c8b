// A host node of a graph reads and writes device memory with std::atomic.
// Expected finding: host_access.
#include <atomic>
struct Work {
    const std::atomic<float>* from;
    std::atomic<float>* to;
    int n;
};
static void CUDART_CB compute(void* data) {
    auto& work = *static_cast<Work*>(data);
    for (int i = 0; i < work.n; ++i) work.to[i] = 2.0f * work.from[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    Work work = {reinterpret_cast<const std::atomic<float>*>(x), reinterpret_cast<std::atomic<float>*>(out), n};
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t node;
    cudaHostNodeParams parameters = {compute, &work};
    cudaGraphCreate(&graph, 0);
    cudaGraphAddHostNode(&node, graph, nullptr, 0, &parameters);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
}
