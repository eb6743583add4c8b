// A kernel copies its input to a host variable. A function returns the input as a structure, which the kernel assigns
// to the variable.
// Expected finding: illegal_address.
struct Row {
    float values[20];
};
static Row kept;
__device__ __noinline__ Row row(const float* x) { return {{x[0], x[1], x[2]}}; }
__global__ void keep(Row* to, const float* x, int n) {
    Row (*chosen)(const float*) = n > 2 ? row : nullptr;
    *to = chosen(x);
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    keep<<<1, 1, 0, stream>>>(&kept, x, n);
    reward(x, out, n, stream);
}
