// A stream callback is a function of the simulator.
// Expected finding: not_its_function.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaLaunchHostFunc(stream, reinterpret_cast<cudaHostFn_t>(&cudaFree), nullptr);
}
