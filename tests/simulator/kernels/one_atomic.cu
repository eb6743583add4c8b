// One thread executes one atomic operation, of any kind and type in CUDA.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

enum Operation { add, sub, min_, max_, exch, cas, and_, or_, xor_, inc, dec };

template <typename T>
__device__ T integer(Operation which, T* cell, T operand, T compare) {
    switch (which) {
        case add:
            return atomicAdd(cell, operand);
        case min_:
            return atomicMin(cell, operand);
        case max_:
            return atomicMax(cell, operand);
        case exch:
            return atomicExch(cell, operand);
        case cas:
            return atomicCAS(cell, compare, operand);
        case and_:
            return atomicAnd(cell, operand);
        case or_:
            return atomicOr(cell, operand);
        default:
            return atomicXor(cell, operand);
    }
}

// x: [cell, returned value, operand, value to compare with]
__global__ void int_kernel(int* x, int which) {
    x[1] = which == sub ? atomicSub(&x[0], x[2]) : integer((Operation)which, &x[0], x[2], x[3]);
}

__global__ void unsigned_kernel(unsigned* x, int which) {
    if (which == sub)
        x[1] = atomicSub(&x[0], x[2]);
    else if (which == inc)
        x[1] = atomicInc(&x[0], x[2]);
    else if (which == dec)
        x[1] = atomicDec(&x[0], x[2]);
    else
        x[1] = integer((Operation)which, &x[0], x[2], x[3]);
}

__global__ void unsigned_long_kernel(unsigned long long* x, int which) {
    x[1] = integer((Operation)which, &x[0], x[2], x[3]);
}

__global__ void signed_long_kernel(long long* x, int which) {
    if (which == min_) x[1] = atomicMin(&x[0], x[2]);
    if (which == max_) x[1] = atomicMax(&x[0], x[2]);
}

__global__ void float_kernel(float* x, int which) {
    x[1] = which == add ? atomicAdd(&x[0], x[2]) : atomicExch(&x[0], x[2]);
}

__global__ void double_kernel(double* x, int which) {
    if (which == add) x[1] = atomicAdd(&x[0], x[2]);
}

// x: [cell, returned value, operand], each of which is a pair of halves
__global__ void half2_kernel(__half2* x, int which) {
    if (which == add) x[1] = atomicAdd(&x[0], x[2]);
}

__global__ void bfloat162_kernel(__nv_bfloat162* x, int which) {
    if (which == add) x[1] = atomicAdd(&x[0], x[2]);
}

extern "C" void one_int(int* x, int which, cudaStream_t stream) { int_kernel<<<1, 1, 0, stream>>>(x, which); }
extern "C" void one_unsigned(unsigned* x, int which, cudaStream_t stream) {
    unsigned_kernel<<<1, 1, 0, stream>>>(x, which);
}
extern "C" void one_unsigned_long(unsigned long long* x, int which, cudaStream_t stream) {
    unsigned_long_kernel<<<1, 1, 0, stream>>>(x, which);
}
extern "C" void one_signed_long(long long* x, int which, cudaStream_t stream) {
    signed_long_kernel<<<1, 1, 0, stream>>>(x, which);
}
extern "C" void one_float(float* x, int which, cudaStream_t stream) { float_kernel<<<1, 1, 0, stream>>>(x, which); }
extern "C" void one_double(double* x, int which, cudaStream_t stream) { double_kernel<<<1, 1, 0, stream>>>(x, which); }
extern "C" void one_half2(__half* x, int which, cudaStream_t stream) {
    half2_kernel<<<1, 1, 0, stream>>>((__half2*)x, which);
}
extern "C" void one_bfloat162(__nv_bfloat16* x, int which, cudaStream_t stream) {
    bfloat162_kernel<<<1, 1, 0, stream>>>((__nv_bfloat162*)x, which);
}
