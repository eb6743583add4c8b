// A CUDA runtime call stores its result in the simulator's data.
// Expected finding: not_its_memory.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaGetDevice(reinterpret_cast<int*>(const_cast<long*>(simulators_data())));
}
