// ldmatrix and mma.sync on a tile that was copied asynchronously.
// n = 256, multiply<<<1, 32>>>(x, out, n)
#include <cuda_fp16.h>

__global__ void multiply(const __half* x, __half* out, int n) {
    __shared__ __align__(16) __half tile[16 * 16];
    const int lane = threadIdx.x;
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(&tile[lane * 8]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(x + lane * 8) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    unsigned a[4], b[2];
    const unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(&tile[(lane % 16) * 16 + lane / 16 * 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(row));
    float c[4] = {};
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 8; ++i) out[lane * 8 + i] = __float2half(c[i % 4] / 65536);
}
