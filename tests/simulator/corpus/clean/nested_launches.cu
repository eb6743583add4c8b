// A kernel launches kernels with arguments. The arguments are stored until the launch, but these stores do not count as
// memory accesses of the launching kernel.
// n = 64, parent<<<1, 4>>>(x, out, n)
__global__ void child(const float* x, float* out, int begin, int end, double factor) {
    const int i = begin + static_cast<int>(threadIdx.x);
    if (i < end) out[i] = static_cast<float>(x[i] * factor);
}

__global__ void parent(const float* x, float* out, int n) {
    const int begin = static_cast<int>(threadIdx.x) * 32;
    if (begin < n) child<<<1, 32>>>(x, out, begin, begin + 32, 2.0);
}
