// Rotary positions, version by version: rotate channels i and i + half of each head by position * frequency(i).
//
// Version 1: one thread per pair of a head computes its angle with powf, cosf and sinf, in float.
// Version 2: the angle in double. Right everywhere, and slow: a double pow, cos and sin for each pair of each head.
// Version 3: the angles of a token are computed once, shared by its heads, and reduced to a part of a turn before the
//            conversion to float.
#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. x and out are (tokens, heads, 2 half), positions is (tokens).

// Version 1: the formula as written.
__global__ void rope_kernel1(const float* x, const int* positions, float* out, int tokens, int heads, int half,
                             float theta) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= tokens * heads * half) return;
    const int pair = i % half, head = i / half;
    const float angle = positions[head / heads] * powf(theta, -static_cast<float>(pair) / half);
    const float cos = cosf(angle), sin = sinf(angle);
    const int at = head * 2 * half + pair;
    const float first = x[at], second = x[at + half];
    out[at] = first * cos - second * sin;
    out[at + half] = second * cos + first * sin;
}

// Version 2: the same with the angle in double.
__global__ void rope_kernel2(const float* x, const int* positions, float* out, int tokens, int heads, int half,
                             double theta) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= tokens * heads * half) return;
    const int pair = i % half, head = i / half;
    const double angle = positions[head / heads] * pow(theta, -static_cast<double>(pair) / half);
    const float c = static_cast<float>(cos(angle)), s = static_cast<float>(sin(angle));
    const int at = head * 2 * half + pair;
    const float first = x[at], second = x[at + half];
    out[at] = first * c - second * s;
    out[at + half] = second * c + first * s;
}

// cos and sin of an angle in turns. Whole turns change nothing, so they are removed while the number is still double.
// The rest is between -1/2 and 1/2, where a float is exact to 3e-8 of a turn.
__device__ float2 cos_sin(double turns) {
    turns -= rint(turns);
    float s, c;
    sincospif(2.0f * static_cast<float>(turns), &s, &c);
    return make_float2(c, s);
}

// Version 3: one block per token computes the angles once, for all heads.
__global__ void rope_kernel3(const float* x, const int* positions, float* out, int heads, int half, double log2_theta) {
    extern __shared__ float2 turn[];  // [half]: cosine and sine of the angle of each pair
    for (int pair = threadIdx.x; pair < half; pair += blockDim.x) {
        const double frequency = exp2(-log2_theta * pair / half) * 0.15915494309189535;  // in turns: times 1 / (2 pi)
        turn[pair] = cos_sin(positions[blockIdx.x] * frequency);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
        const int pair = i % half;
        const int at = (blockIdx.x * heads + i / half) * 2 * half + pair;
        const float2 t = turn[pair];
        const float first = x[at], second = x[at + half];
        out[at] = first * t.x - second * t.y;
        out[at + half] = second * t.x + first * t.y;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

extern "C" void rope_1(const float* x, const int* positions, float* out, int tokens, int heads, int half, float theta,
                       cudaStream_t stream) {
    rope_kernel1<<<(tokens * heads * half + 255) / 256, 256, 0, stream>>>(x, positions, out, tokens, heads, half,
                                                                          theta);
}

extern "C" void rope_2(const float* x, const int* positions, float* out, int tokens, int heads, int half, float theta,
                       cudaStream_t stream) {
    rope_kernel2<<<(tokens * heads * half + 255) / 256, 256, 0, stream>>>(x, positions, out, tokens, heads, half,
                                                                          theta);
}

extern "C" void rope_3(const float* x, const int* positions, float* out, int tokens, int heads, int half, float theta,
                       cudaStream_t stream) {
    rope_kernel3<<<tokens, 128, half * sizeof(float2), stream>>>(x, positions, out, heads, half,
                                                                 log2(static_cast<double>(theta)));
}
