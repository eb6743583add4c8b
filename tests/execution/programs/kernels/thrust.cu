// Thrust: common uses, and three mistakes.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

struct Saxpy {
    float a;
    __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};
struct Odd {
    __host__ __device__ bool operator()(int x) const { return x % 2; }
};

__global__ void add_one(int* x, int n) {
    int i = threadIdx.x;
    if (i < n) x[i] += 1;
}

template <typename Vector>
void show(const char* name, const Vector& values) {
    std::cout << name;
    thrust::copy(values.begin(), values.end(), std::ostream_iterator<int>(std::cout << " ", " "));
    std::cout << "\n";
}

void right() {
    thrust::host_vector<int> host(10);
    for (int i = 0; i < 10; ++i) host[i] = 7 * i % 10;
    thrust::device_vector<int> d = host;
    thrust::sort(d.begin(), d.end());
    d[0] = 5;
    d[1] += 3;
    add_one<<<1, 32>>>(thrust::raw_pointer_cast(d.data()), d.size());
    show("elements", d);
    std::cout << "reduce " << d[0] << " " << thrust::reduce(d.begin(), d.end()) << " "
              << thrust::reduce(d.begin(), d.end(), -1, thrust::maximum<int>()) << " "
              << thrust::count_if(d.begin(), d.end(), Odd()) << " " << thrust::count(d.begin(), d.end(), 5) << "\n";
    thrust::device_vector<float> x(1 << 14), y(x.size(), 1.0f);
    thrust::sequence(x.begin(), x.end(), 0.0f, 0.5f);
    thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), Saxpy{2});
    std::cout << "transform " << y[1 << 10] << " " << y.back() << " "
              << thrust::inner_product(x.begin(), x.begin() + 4, y.begin(), 0.0f) << " "
              << thrust::max_element(y.begin(), y.end()) - y.begin() << "\n";
    thrust::fill(y.begin(), y.end(), 0.1f);  // summing these floats one by one is wrong in the third digit
    float sum = thrust::transform_reduce(y.begin(), y.end(), thrust::negate<float>(), 0.0f, thrust::plus<float>());
    printf("sum %.2f\n", sum);
    thrust::device_vector<int> scanned(d.size());
    thrust::inclusive_scan(d.begin(), d.end(), scanned.begin());
    show("inclusive", scanned);
    thrust::exclusive_scan(scanned.begin(), scanned.end(), scanned.begin(), 100);
    host = scanned;
    show("exclusive", host);
    thrust::device_vector<int> keys = std::vector<int>{3, 1, 2, 1}, values(4);
    thrust::sequence(values.begin(), values.end());
    thrust::sort_by_key(keys.begin(), keys.end(), values.begin(), thrust::greater<int>());
    show("keys", keys);
    show("values", values);
    thrust::device_vector<int> sums(4);
    auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), keys.begin(), sums.begin());
    keys.erase(ends.first, keys.end());
    show("runs", keys);
    show("sums", thrust::host_vector<int>(sums.begin(), ends.second));
    int* raw = thrust::raw_pointer_cast(&values[0]);
    thrust::for_each(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(4),
                     [=] __device__(int i) { raw[i] *= i; });
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    auto zip = thrust::make_zip_iterator(thrust::make_tuple(values.begin(), sums.begin()));
    thrust::for_each(thrust::cuda::par.on(stream), zip, zip + 3,
                     [] __device__(auto both) { thrust::get<0>(both) += 10 * thrust::get<1>(both); });
    thrust::replace(thrust::device, raw, raw + 4, 6, 1);
    show("values", values);
    auto negative = thrust::make_transform_iterator(values.begin(), thrust::negate<int>());
    values.push_back(thrust::reduce(negative, negative + 4));
    show("values", values);
    thrust::stable_sort(host.begin(), host.end(), thrust::greater<int>());
    host.erase(thrust::unique(host.begin(), host.end(), [](int a, int b) { return a / 20 == b / 20; }), host.end());
    show("host", host);
    int array[] = {4, 1, 9};
    auto ends_of = thrust::minmax_element(array, array + 3);
    thrust::inclusive_scan(array, array + 3, array);
    std::cout << "array " << ends_of.second - ends_of.first << " " << array[2] << "\n";
}

void wrong() {
    thrust::device_vector<int> d(10, 1);
    add_one<<<1, 32>>>(thrust::raw_pointer_cast(d.data()), d.size() + 1);
    std::cout << thrust::reduce(d.begin(), d.begin() + 11) << "\n";  // one element too many
    int *garbage, *raw = d.data().get();
    cudaMalloc(&garbage, 40);
    thrust::copy(thrust::device, garbage, garbage + 10, d.begin());  // never initialized
    thrust::for_each(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(10),
                     [=] __device__(int i) { raw[0] += i; });  // a race
    cudaFree(garbage);
    std::cout << d[10] << "\n";  // out of range: throws
}

int main(int argc, char**) {
    if (argc == 1) return right(), 0;
    try {
        wrong();
    } catch (const thrust::system_error& error) {
        printf("%s\n", error.what());
    }
}
