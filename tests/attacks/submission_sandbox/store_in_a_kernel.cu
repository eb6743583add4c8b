// A kernel writes to the simulator's data.
// Expected finding: illegal_address.
__global__ void there(volatile long* data) { *data = 0; }
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    there<<<1, 1, 0, stream>>>(simulators_data());
}
