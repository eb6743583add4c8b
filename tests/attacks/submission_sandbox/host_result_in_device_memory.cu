// The launcher makes a CUDA runtime call store its result in device memory.
// Expected finding: host_access.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaGetDevice(reinterpret_cast<int*>(out));
    reward(x, out, n, stream);
}
