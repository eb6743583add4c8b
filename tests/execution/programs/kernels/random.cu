// cuRAND: its device API in a kernel, its host generators, and outputs that are too short.
#include <cstdio>
#include <cstring>
#include <curand.h>
#include <curand_kernel.h>
#include <vector>

constexpr int cases = 5, words = 8, normals = 6;

struct Start {
    unsigned long long seed, sequence, offset;
};

template <typename State>
__device__ void draw(Start start, unsigned* bits, float* normal) {
    State state;
    curand_init(start.seed, start.sequence, start.offset, &state);
    bits[0] = curand(&state);
    float uniform = curand_uniform(&state);
    double precise = curand_uniform_double(&state);
    memcpy(bits + 1, &uniform, 4);
    memcpy(bits + 2, &precise, 8);
    skipahead(12345, &state);
    bits[4] = curand(&state);
    skipahead_sequence(1ull << 33 | 3, &state);
    bits[5] = curand(&state);
    normal[0] = curand_normal(&state);
    normal[1] = curand_normal(&state);
    normal[2] = curand_log_normal(&state, 1.0f, 0.5f);
    normal[3] = float(curand_normal_double(&state));
    normal[4] = float(curand_normal2_double(&state).y);
    normal[5] = curand_normal2(&state).x;
    bits[6] = curand(&state);
}

// The state starts at the third number of a group of four.
__device__ void draw_four(Start start, unsigned* bits) {
    curandStatePhilox4_32_10_t state;
    curand_init(start.seed, start.sequence, start.offset + 2, &state);
    uint4 four = curand4(&state);
    float uniform = curand_uniform4(&state).w;
    double precise = curand_uniform2_double(&state).y;
    bits[0] = four.x, bits[1] = four.y, bits[2] = four.z, bits[3] = four.w;
    memcpy(bits + 4, &uniform, 4);
    memcpy(bits + 5, &precise, 8);
}

__device__ void draw_all(const Start* starts, int i, unsigned* bits, float* normal) {
    draw<curandStateXORWOW_t>(starts[i], bits + 3 * i * words, normal + 2 * i * normals);
    draw<curandStatePhilox4_32_10_t>(starts[i], bits + (3 * i + 1) * words, normal + (2 * i + 1) * normals);
    draw_four(starts[i], bits + (3 * i + 2) * words);
}

__global__ void kernel(const Start* starts, unsigned* bits, float* normal) {
    draw_all(starts, threadIdx.x, bits, normal);
}

__global__ void set_up(curandState* states) { curand_init(7, threadIdx.x, 0, &states[threadIdx.x]); }
__global__ void go_on(curandState* states, float* out, int n) {
    curandState mine = states[threadIdx.x];
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = curand_uniform(&mine);
    states[threadIdx.x] = mine;
}

template <typename T>
std::vector<T> from_device(const T* data, int n) {
    std::vector<T> values(n);
    cudaMemcpy(values.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
}

void host_generator(curandRngType_t type) {
    curandGenerator_t generator;
    curandCreateGenerator(&generator, type);
    curandSetPseudoRandomGeneratorSeed(generator, 1234);
    unsigned* bits;
    double* doubles;
    float* floats;
    int n = type == CURAND_RNG_PSEUDO_XORWOW ? 4098 : 262150;
    cudaMalloc(&bits, n * 4);
    cudaMalloc(&doubles, n * 8);
    cudaMalloc(&floats, n * 4);
    curandGenerate(generator, bits, n - 2);
    curandGenerate(generator, bits + n - 2, 2);
    auto words = from_device(bits, n);
    printf("host %08x %08x %08x %08x\n", words[0], words[1], words[n - 2], words[n - 1]);
    curandSetPseudoRandomGeneratorSeed(generator, 1234);
    curandGenerateUniformDouble(generator, doubles, n);
    auto precise = from_device(doubles, n);
    curandSetPseudoRandomGeneratorSeed(generator, 1234);
    curandGenerateNormal(generator, floats, n, 0, 1);
    auto normal = from_device(floats, n);
    curandSetPseudoRandomGeneratorSeed(generator, 1234);
    curandGenerateNormalDouble(generator, doubles, n, 0, 1);
    auto both = from_device(doubles, n);
    printf("host %.17g %.17g %.5f %.5f %.5f %.5f\n", precise[1], precise[n - 1], normal[2], normal[n - 1], both[2],
           both[n - 1]);
    curandDestroyGenerator(generator);
    cudaFree(bits);
    cudaFree(doubles);
    cudaFree(floats);
}

int main(int argc, char**) {
    Start starts[cases] = {
        {0, 0, 0}, {1234, 0, 0}, {1234, 5, 1}, {~0ull, 12345678901234567ull, 0}, {0x123456789abcdefull, 3, 1ull << 50}};
    Start* on_device;
    unsigned* bits;
    float* normal;
    cudaMalloc(&on_device, sizeof starts);
    cudaMalloc(&bits, 3 * cases * words * 4);
    cudaMalloc(&normal, 2 * cases * normals * 4);
    cudaMemset(bits, 0, 3 * cases * words * 4);
    cudaMemcpy(on_device, starts, sizeof starts, cudaMemcpyHostToDevice);
    kernel<<<1, cases>>>(on_device, bits, normal);
    auto all = from_device(bits, 3 * cases * words);
    for (int i = 0; i < 3 * cases * words; ++i) printf("%08x%c", all[i], i % words == words - 1 ? '\n' : ' ');
    auto some = from_device(normal, 2 * cases * normals);
    for (int i = 0; i < 2 * cases * normals; ++i) printf("%.4f%c", some[i], i % normals == normals - 1 ? '\n' : ' ');
    host_generator(CURAND_RNG_PSEUDO_XORWOW);
    host_generator(CURAND_RNG_PSEUDO_PHILOX4_32_10);
    curandState* states;
    float* out;
    cudaMalloc(&states, 32 * sizeof *states);
    cudaMalloc(&out, 100 * sizeof *out);
    set_up<<<1, 32>>>(states);
    go_on<<<1, 32>>>(states, out, argc > 1 ? 101 : 100);  // out is too short for 101 numbers
    if (argc > 1) {
        curandGenerator_t generator;
        curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
        curandGenerateUniform(generator, out, 101);  // out is too short for 101 numbers
        printf("%d\n", curandGenerateNormal(generator, out, 99, 0, 1));
        curandDestroyGenerator(generator);
    }
    cudaDeviceSynchronize();
    cudaFree(on_device);
    cudaFree(bits);
    cudaFree(normal);
    cudaFree(states);
    cudaFree(out);
}
