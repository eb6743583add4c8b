// Complex numbers of cuComplex.h and thrust/complex.h, on the host and on the device.
#include <cuComplex.h>
#include <sm_61_intrinsics.h>

#include <cstdio>
#include <thrust/complex.h>

constexpr int N = 32;

__host__ __device__ void compute(float* out) {
    int i = 0;
    auto put = [&](auto z) {
        out[i++] = z.real();
        out[i++] = z.imag();
    };
    auto keep = [&](auto z) {
        out[i++] = z.x;
        out[i++] = z.y;
    };
    cuComplex a = make_cuComplex(1, -2), b = make_cuFloatComplex(0.5f, 4);
    keep(cuCaddf(cuCsubf(a, b), cuCmulf(a, b)));
    keep(cuCdivf(a, b));
    keep(cuCfma(cuComplexFloatToDouble(a), make_cuDoubleComplex(cuCrealf(b), cuCabsf(b)), make_cuDoubleComplex(1, 1)));
    keep(cuComplexDoubleToFloat(cuCdiv(cuComplexFloatToDouble(cuConjf(b)), make_cuDoubleComplex(1e200, 1e200))));
    thrust::complex<float> x(1, -2), y(0.5f);
    thrust::complex<double> z = x;
    y.imag(4);
    x *= y;
    x -= 1.0f;
    put(x + 2 * y - y / x);
    put(1.0f / y);
    put(z * y + 3);
    put(thrust::exp(y));
    put(thrust::sqrt(-x));
    put(thrust::pow(y, 2.0f));
    put(thrust::polar(2.0f, 0.5f) + thrust::conj(y));
    out[i++] = thrust::abs(x) + thrust::arg(y) + thrust::norm(z);
    out[i++] = (x == y) + 2 * (z != y) + 4 * (thrust::complex<float>(3) == 3.0f);
    put(thrust::tanh(y) + thrust::log(thrust::complex<float>() + 1.0f));
    out[i++] = sizeof(thrust::complex<float>) * 100 + alignof(thrust::complex<double>);
}
__global__ void kernel(float* out) { compute(out); }

int main(int argc, char**) {
    float out[N] = {}, *device;
    compute(out);
    for (float x : out) printf("%.5g ", double(x));
    printf("\n");
    if (argc > 1) return 0;
    cudaMallocManaged(&device, sizeof(out));
    for (int i = 0; i < N; ++i) device[i] = 0;
    kernel<<<1, 1>>>(device);
    cudaDeviceSynchronize();
    for (int i = 0; i < N; ++i) printf("%.5g ", double(device[i]));
    printf("\n");
    cudaFree(device);
}
