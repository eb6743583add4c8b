// CUB's algorithms over device memory: their results, and an input that was never written.
#include <cstdio>
#include <cub/cub.cuh>

template <typename T>
void show(const char* name, const T* values, int n) {
    cudaDeviceSynchronize();
    printf("%s", name);
    for (int i = 0; i < n; ++i) printf(" %g", static_cast<double>(values[i]));
    printf("\n");
}

template <typename F>
void with_storage(F f) {
    void* storage = nullptr;
    size_t bytes = 0;
    f(storage, bytes);
    cudaMalloc(&storage, bytes);
    f(storage, bytes);
    cudaFree(storage);
}

int main(int argc, char**) {
    constexpr int n = 6;
    const float given[n] = {2.5f, -1.0f, 7.0f, 0.0f, -3.0f, 7.0f};
    float *x, *out;
    int *index, *order;
    cub::KeyValuePair<int, float>* best;
    cudaMallocManaged(&x, sizeof given);
    cudaMallocManaged(&out, sizeof given);
    cudaMallocManaged(&index, n * sizeof(int));
    cudaMallocManaged(&order, n * sizeof(int));
    cudaMallocManaged(&best, sizeof *best);
    for (int i = 0; i < n; ++i) index[i] = 5 * i;
    for (int i = 0; i < n; ++i) x[i] = given[i];
    if (argc > 1) cudaMalloc(&x, sizeof given);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceReduce::Sum(s, bytes, x, out, n); });
    show("sum", out, 1);
    if (argc > 1) return 0;
    with_storage([=](void* s, size_t& bytes) { cub::DeviceReduce::Max(s, bytes, x, out, n); });
    show("max", out, 1);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceReduce::Min(s, bytes, x, out, n); });
    show("min", out, 1);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceReduce::ArgMax(s, bytes, x, best, n); });
    cudaDeviceSynchronize();
    printf("argmax %d %g\n", best->key, best->value);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceReduce::ArgMin(s, bytes, x, out, index, n); });
    cudaDeviceSynchronize();
    printf("argmin %d %g\n", index[0], out[0]);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceReduce::ArgMax(s, bytes, x, out, index, n); });
    cudaDeviceSynchronize();
    printf("argmax %d %g\n", index[0], out[0]);
    index[0] = 0;
    with_storage([=](void* s, size_t& bytes) { cub::DeviceScan::InclusiveSum(s, bytes, x, out, n); });
    show("inclusive", out, n);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceScan::ExclusiveSum(s, bytes, x, out, n); });
    show("exclusive", out, n);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceRadixSort::SortKeys(s, bytes, x, out, n); });
    show("sorted", out, n);
    with_storage(
        [=](void* s, size_t& bytes) { cub::DeviceRadixSort::SortPairsDescending(s, bytes, x, out, index, order, n); });
    show("descending", order, n);
    with_storage([=](void* s, size_t& bytes) { cub::DeviceRadixSort::SortKeys(s, bytes, index, order, n, 0, 3); });
    show("low bits", order, n);
    cudaFree(x);
    cudaFree(out);
    cudaFree(index);
    cudaFree(order);
    cudaFree(best);
}
