// A callback of a stream is a function of the simulator.
// Expected finding: not_its_function.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaStreamAddCallback(stream, reinterpret_cast<cudaStreamCallback_t>(&cudaStreamDestroy), nullptr, 0);
}
