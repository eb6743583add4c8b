// A kernel overwrites its return address.
// Expected finding: not_its_stack.
// The function contains a decltype, so the simulator places no red zones (guard bytes) around the array `local`.
__global__ void there(int count, long value) {
    volatile long local[2] = {0, 0};
    volatile decltype(value)* p = local + blockIdx.x;
    for (int k = 0; k < count; ++k) p[k] = value;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    there<<<1, 1, 0, stream>>>(16, reinterpret_cast<long>(&cudaGetLastError));
}
