// The kernel accesses one element before or past local arrays, through pointers or in called functions.
struct Pair {
    float x;
    short y;
};

__device__ void fill(int* p, int count) {
    for (int i = 0; i < count; ++i) p[i] = i;  // expected finding: out_of_bounds
}

__device__ int last_of(const int* p, int count) {
    return p[count - 1];  // expected finding: out_of_bounds
}

template <typename T, int columns>
__device__ T of_rows(int row, T value) {
    T table[3][columns] = {};
    T* p = table[0];
    p[row * columns] = value;  // expected finding: out_of_bounds
    return table[2][columns - 1] + value;
}

__device__ float by_address(int back) {
    float four[4] = {1, 2, 3, 4}, *p = &four[3];
    p[-back] = 7;  // expected finding: out_of_bounds
    return four[0] + four[3];
}

__device__ int of_structures(int i) {
    Pair pairs[3];
    Pair* last = pairs + 2;
    pairs[0].y = pairs[2].y = 1;
    last[i].y = 2;  // expected finding: out_of_bounds
    return pairs[2].y;
}

__device__ int of_bytes(int i) {
    char text[6] = "abcde";
    char* p = text;
    p[i] = 'x';  // expected finding: out_of_bounds
    return text[5];
}

__device__ float in_a_loop(int count) {
    float sum = 0;
    for (int round = 0; round < 3; ++round) {
        float values[5];
        float* p = values;
        for (int i = 0; i < count; ++i) p[i] = round;  // expected finding: out_of_bounds
        for (int i = 0; i < 5; ++i) sum += values[i];
    }
    return sum;
}

__device__ double of_wide(int i) {
    alignas(32) double wide[4] = {1, 2, 3, 4};
    const double* p = wide;
    return p[i];  // expected finding: out_of_bounds
}

__device__ float of_vectors(int i) {
    float4 vectors[2] = {};
    float4* p = vectors;
    p[i] = make_float4(1, 2, 3, 4);  // expected finding: out_of_bounds
    return vectors[1].w;
}

__device__ int between_others(int i) {
    int before[4] = {1, 2, 3, 4}, middle[4] = {}, after[4] = {5, 6, 7, 8};
    int *p = middle, *q = before, *r = after;
    p[i] += 1;  // expected finding: out_of_bounds
    return q[3] + r[0] + middle[3];
}

__device__ int by_reference(int (&four)[4], int i) {
    int* end = four + 4;
    return *(end - i);  // expected finding: out_of_bounds
}

__device__ int by_copy(int count) {
    int from[6] = {1, 2, 3, 4, 5, 6}, to[6] = {};
    memcpy(to, from, count * sizeof(int));  // expected finding: out_of_bounds
    return to[5];
}

__device__ float in_two_functions_at_a_place(int i) {
    // Red zones of functions that have returned are ignored.
    float many[64];
    float* p = many;
    for (int k = 0; k < 64; ++k) p[k] = k;
    return p[i % 64];
}

__global__ void leave(const float* x, float* out, int n, int one) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int filled[4] = {}, five[5] = {1, 2, 3, 4, 5}, of_a_reference[4] = {1, 2, 3, 4};
    fill(filled, 4 + one);
    float sum = filled[3] + last_of(five, 5 + one) + of_rows<float, 7>(2 + one, 1.5f) + of_rows<short, 3>(2 + one, 2);
    sum += by_address(3 + one) + of_structures(one) + of_bytes(5 + one) + in_a_loop(5 + one) + of_wide(3 + one);
    sum += of_vectors(1 + one) + between_others(3 + one) + by_reference(of_a_reference, one ? 0 : 1);
    sum += by_copy(6 + one) + in_two_functions_at_a_place(i);
    out[i] = x[i] + sum;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    leave<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, 0);
#else
    leave<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, 1);
#endif
}
