// The kernel accesses the parts of local variables that are no arrays, through pointers, casts and member functions.
// n = 256, parts<<<2, 128>>>(x, out, n)
struct Packed {
    uint4 bits;
    __device__ float get(int j) const { return reinterpret_cast<const float*>(&bits)[j]; }
    __device__ void set(int j, float value) { reinterpret_cast<float*>(&bits)[j] = value; }
};

struct Fragment {
    int row;
    float values[4];
};

// A header of a list in shared memory. The list's memory has room for more than one value.
struct List {
    int length;
    float values[1];
};

__device__ void fill(float* values, int count, float value) {
    for (int j = 0; j < count; ++j) values[j] = value;  // writes to a Fragment
}

__device__ float sum_of(const float* values, int count) {
    float sum = 0;
    for (int j = 0; j < count; ++j) sum += values[j];  // reads a Fragment
    return sum;
}

__device__ void scale(Fragment& fragment, int count, float factor) {
    for (int j = 0; j < count; ++j) fragment.values[j] *= factor;  // accesses a Fragment by reference
}

__device__ float last_of(Fragment fragment, int j) {
    const float* values = fragment.values;
    return values[j];
}

__device__ Fragment made(int count) {
    Fragment fragment = {0, {1, 1, 1, 1}};
    float* values = fragment.values;
    for (int j = 0; j < count; ++j) values[j] = j;  // writes a Fragment that is returned
    return fragment;
}

template <typename T>
__device__ float of_bytes(uint4 bits, int count) {
    const T* parts = reinterpret_cast<const T*>(&bits);
    float sum = 0;
    for (int j = 0; j < count; ++j) sum += static_cast<float>(parts[j]);  // reads a uint4
    return sum;
}

__global__ void parts(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    Packed packed;
    for (int j = 0; j < 4; ++j) packed.set(j, x[i] + j);  // sets
    float sum = 0;
    for (int j = 0; j < 4; ++j) sum += packed.get(j);  // gets

    float4 four = make_float4(1, 2, 3, 4);
    for (int j = 0; j < 4; ++j) (&four.x)[j] += j;  // writes by x
    float* p = reinterpret_cast<float*>(&four);
    for (int j = 0; j < n / 64; ++j) p[j] += 1;  // writes by cast
    for (float *q = p, *end = p + 4; q < end; ++q) sum += *q;
    sum += of_bytes<short>(packed.bits, n / 32);

    Fragment fragment = {i, {1, 2, 3, 4}}, several[2] = {};
    fill(fragment.values, n / 64, x[i]);
    scale(fragment, n / 64, 2);
    float* own = fragment.values;
    own[n / 64 - 1] += 1;  // writes its own fragment
    several[1].values[n / 64 - 1] = 1;
    sum += sum_of(fragment.values, n / 64) + last_of(fragment, n / 64 - 1) + made(n / 64).values[3];
    sum += several[1].values[3];

    // An array of floats is read as float4, and one past its end is a valid pointer.
    __align__(16) float eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (float4 *v = reinterpret_cast<float4*>(eight), *end = v + 2; v != end; ++v) sum += v->x + v->w;

    __shared__ int words[129];
    List* list = reinterpret_cast<List*>(words);
    if (threadIdx.x == 0) list->length = 128;
    float* slot = &list->values[threadIdx.x];
    __syncthreads();
    *slot = 0;
    list->values[threadIdx.x] = sum;
    __syncthreads();
    out[i] = list->values[127 - threadIdx.x] + list->length;
}
