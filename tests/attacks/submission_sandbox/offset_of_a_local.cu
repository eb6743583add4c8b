// Fixed offsets from a local array reach the callers' stack frames.
// Expected finding: not_its_stack.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile long local[2] = {n, n};
    volatile long* first = &local[0];
    *(first + 64) = *(first + 64);
    *(first + 96) = *(first + 96);
    *(first + 128) = *(first + 128);
}
