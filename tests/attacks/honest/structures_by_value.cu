// A kernel passes structures from device memory by value, by function pointer or virtual call. Each byte counts once.
struct Pair {
    float values[2];
};
struct Four {
    float values[4];
};
struct Row {
    float values[16];
};
struct Scale {
    __device__ virtual Row by(Row row, float factor) const {
        for (float& value : row.values) value *= factor;
        return row;
    }
};
__device__ __noinline__ Row added(Row row, float) {
    for (float& value : row.values) value += value;
    return row;
}
__device__ __noinline__ Row multiplied(Row row, float factor) { return Scale().by(row, factor); }
__device__ __noinline__ Four four(Four given) {
    for (float& value : given.values) value *= 2.0f;
    return given;
}
__device__ __noinline__ Pair pair(Pair given) { return {{given.values[0] * 2.0f, given.values[1] * 2.0f}}; }

__global__ void kernel(const float* x, float* out, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x, first = 16 * row;
    if (first + 16 <= n) {
        Row (*chosen)(Row, float) = row % 3 ? multiplied : added;
        Scale scale;
        const Row& given = *reinterpret_cast<const Row*>(x + first);
        *reinterpret_cast<Row*>(out + first) = row % 2 ? chosen(given, 2.0f) : scale.by(given, 2.0f);
    } else {
        int i = first;
        for (; i + 4 <= n; i += 4) *reinterpret_cast<Four*>(out + i) = four(*reinterpret_cast<const Four*>(x + i));
        for (; i + 2 <= n; i += 2) *reinterpret_cast<Pair*>(out + i) = pair(*reinterpret_cast<const Pair*>(x + i));
        for (; i < n; ++i) out[i] = 2.0f * x[i];
    }
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n / 16 + 64) / 64, 64, 0, stream>>>(x, out, n);
}
