// Thrust's random numbers on the host and on the device, and partitions with and without a stencil.
#include <cstdio>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

struct Numbers {
    unsigned x[4];
    double real, normal;
    float real_float, normal_float;
    int die, any;
};

struct Draw {
    __host__ __device__ Numbers operator()(int i) const {
        Numbers all;
        thrust::default_random_engine engine(123 + i);
        engine.discard(1000003ull * i);
        all.x[0] = engine();
        thrust::random::minstd_rand0 older;
        older.seed(2147483647u);
        older.discard(i);
        all.x[1] = older();
        thrust::linear_congruential_engine<unsigned, 16807, 12345, 2147483647> other(i);
        other.discard(3);
        all.x[2] = other();
        all.x[3] = engine == thrust::minstd_rand(i);
        thrust::uniform_real_distribution<double> real(-1, 2);
        thrust::uniform_real_distribution<float> real_float;
        thrust::uniform_int_distribution<int> die(1, 6), any;
        thrust::normal_distribution<double> normal;
        thrust::random::normal_distribution<float> normal_float(3.0f, 0.5f);
        all.real = real(engine);
        all.real_float = real_float(engine);
        all.die = die(engine);
        all.any = any(engine);
        all.normal = normal(engine);
        all.normal_float = normal_float(engine);
        return all;
    }
};
struct Odd {
    __host__ __device__ bool operator()(int x) const { return x % 2; }
};

void show(const Numbers& n) {
    printf("%u %u %u %u %.17g %.9g %d %d %.12g %.6g\n", n.x[0], n.x[1], n.x[2], n.x[3], n.real, n.real_float, n.die,
           n.any, n.normal, n.normal_float);
}
template <typename Iterator>
void show(const char* name, Iterator first, Iterator last) {
    printf("%s", name);
    for (; first != last; ++first) printf(" %d", int(*first));
    printf("\n");
}

void numbers_on_the_host() {
    for (int i = 0; i < 6; ++i) show(Draw()(i));
}

template <typename Vector>
void partitions() {
    Vector x(10), flags(10), yes(10, -1), no(10, -1);
    thrust::sequence(x.begin(), x.end());
    for (int i = 0; i < 10; ++i) flags[i] = i * i % 7;  // 0 1 4 2 2 4 1 0 1 4
    auto ends = thrust::partition_copy(x.begin(), x.end(), yes.begin(), no.begin(), Odd());
    show("copy", yes.begin(), ends.first);
    show("rest", no.begin(), ends.second);
    ends = thrust::stable_partition_copy(x.begin(), x.end(), flags.begin(), yes.begin(), no.begin(), Odd());
    show("stencil copy", yes.begin(), ends.first);
    show("rest", no.begin(), ends.second);
    auto middle = thrust::stable_partition(x.begin(), x.end(), flags.begin(), Odd());
    show("stencil", x.begin(), x.end());
    printf("middle %d\n", int(middle - x.begin()));
    middle = thrust::stable_partition(x.begin(), x.end(), Odd());
    show("stable", x.begin(), middle);
    printf("partitioned %d %d\n", int(thrust::is_partitioned(x.begin(), x.end(), Odd())),
           int(thrust::partition_point(x.begin(), x.end(), Odd()) - x.begin()));
    middle = thrust::partition(x.begin(), x.end(), flags.begin(), Odd());
    int sum = 0;
    for (auto at = x.begin(); at != middle; ++at) sum += *at;
    printf("sum %d of %d\n", sum, int(middle - x.begin()));
}

int main(int argc, char** argv) {
    numbers_on_the_host();
    partitions<thrust::host_vector<int>>();
    if (argc > 1) return 0;
    partitions<thrust::device_vector<int>>();
    thrust::device_vector<Numbers> device(6);
    thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(6), device.begin(), Draw());
    thrust::host_vector<Numbers> host = device;
    for (const Numbers& numbers : host) show(numbers);
    thrust::device_vector<int> keys(3), values(3);
    keys[0] = 2, keys[1] = 3, keys[2] = 1;
    thrust::sequence(thrust::device, values.begin(), values.end());
    thrust::sort_by_key(thrust::device, keys.begin(), keys.end(), values.begin());
    show("values", values.begin(), values.end());
    thrust::lower_bound(keys.begin(), keys.end(), values.begin(), values.end(), values.begin());
    show("searched", values.begin(), values.end());
    thrust::binary_search(thrust::device, keys.begin(), keys.end(), keys.begin() + 1, keys.end(), values.begin(),
                          thrust::less<int>());
    auto second = thrust::upper_bound(keys.begin(), keys.end(), 1);
    printf("found %d%d %d\n", int(values[0]), int(values[1]), int(second - keys.begin()));
    auto ends =
        thrust::reduce_by_key(keys.begin(), keys.end(), keys.begin(), thrust::make_discard_iterator(), values.begin());
    show("sums", values.begin(), ends.second);
}
