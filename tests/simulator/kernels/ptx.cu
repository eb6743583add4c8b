// Kernels with inline PTX, one for each family of instructions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
// Returns what shared_address returns, but converts the pointer in PTX, as older code does.
__device__ __forceinline__ uint32_t shared_address_by_ptx(const void* pointer) {
    uint32_t address;
    asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }" : "=r"(address) : "l"(pointer));
    return address;
}

// ------------------------------------------------------------------------------------------------------ tensor cores

__global__ void mma_bytes(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d, int is_signed) {
    int lane = threadIdx.x;
    const uint32_t *ra = a + 4 * lane, *rb = b + 2 * lane, *rc = c + 4 * lane;
    uint32_t d0, d1, d2, d3;
    if (is_signed) {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
            : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
            : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "r"(rc[0]), "r"(rc[1]),
              "r"(rc[2]), "r"(rc[3]));
    } else {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
            : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
            : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "r"(rc[0]), "r"(rc[1]),
              "r"(rc[2]), "r"(rc[3]));
    }
    d[4 * lane] = d0, d[4 * lane + 1] = d1, d[4 * lane + 2] = d2, d[4 * lane + 3] = d3;
}

// Accumulates in place ("+f"), as most kernels do.
__device__ void multiply_f16(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply_bf16(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(sums[0]), "f"(sums[1]), "f"(sums[2]),
          "f"(sums[3]));
}
__device__ void mma_m16n8k8_tf32(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply_f16_k8(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
__global__ void mma_floats(const uint32_t* a, const uint32_t* b, const float* c, float* d, int kind) {
    int lane = threadIdx.x;
    uint32_t ra[4], rb[2];
    float sums[4];
    for (int i = 0; i < 4; ++i) ra[i] = a[4 * lane + i], sums[i] = c[4 * lane + i];
    for (int i = 0; i < 2; ++i) rb[i] = b[2 * lane + i];
    if (kind == 0) multiply_f16(sums, ra, rb);
    if (kind == 1) multiply_bf16(sums, ra, rb);
    if (kind == 2) mma_m16n8k8_tf32(sums, ra, rb);
    if (kind == 3) multiply_f16_k8(sums, ra, rb);
    for (int i = 0; i < 4; ++i) d[4 * lane + i] = sums[i];
}
__global__ void mma_halves(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {
    int lane = threadIdx.x;
    uint32_t d0, d1;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};\n"
                 : "=r"(d0), "=r"(d1)
                 : "r"(a[4 * lane]), "r"(a[4 * lane + 1]), "r"(a[4 * lane + 2]), "r"(a[4 * lane + 3]), "r"(b[2 * lane]),
                   "r"(b[2 * lane + 1]), "r"(c[2 * lane]), "r"(c[2 * lane + 1]));
    d[2 * lane] = d0;
    d[2 * lane + 1] = d1;
}
__global__ void mma_doubles(const double* a, const double* b, const double* c, double* d) {
    int lane = threadIdx.x;
    double d0, d1;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};\n"
                 : "=d"(d0), "=d"(d1)
                 : "d"(a[lane]), "d"(b[lane]), "d"(c[2 * lane]), "d"(c[2 * lane + 1]));
    d[2 * lane] = d0;
    d[2 * lane + 1] = d1;
}

// Loads four 8x8 matrices of shorts, which are stacked in shared memory, with ldmatrix, and stores them with stmatrix.
__global__ void matrices(const short* in, uint32_t* loaded, uint32_t* transposed, uint32_t* two, uint32_t* one,
                         short* stored, short* stored_transposed, uint32_t* moved) {
    __shared__ __align__(16) short tile[32 * 8], back[32 * 8], back_transposed[32 * 8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) tile[i] = in[i];
    __syncwarp();
    uint32_t r0, r1, r2, r3, row = shared_address(&tile[lane * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
                 : "r"(row));
    loaded[4 * lane] = r0, loaded[4 * lane + 1] = r1, loaded[4 * lane + 2] = r2, loaded[4 * lane + 3] = r3;
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(shared_address(&back[lane * 8])),
        "r"(r0), "r"(r1), "r"(r2), "r"(r3));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(
                     shared_address(&back_transposed[lane * 8])),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(moved[lane]) : "r"(r2));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
                 : "r"(row));
    transposed[4 * lane] = r0, transposed[4 * lane + 1] = r1, transposed[4 * lane + 2] = r2,
                   transposed[4 * lane + 3] = r3;
    // ldmatrix ignores the addresses of lanes 16-31 for .x2, and of lanes 8-31 for .x1.
    uint32_t address = lane < 16 ? shared_address_by_ptx(&tile[lane * 8]) : 0xffffff0u;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2];\n" : "=r"(r0), "=r"(r1) : "r"(address));
    two[2 * lane] = r0, two[2 * lane + 1] = r1;
    if (lane >= 8) address = 0xffffff0u;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1+0];\n" : "=r"(r0) : "r"(address));
    one[lane] = r0;
    __syncwarp();
    for (int i = lane; i < 256; i += 32) stored[i] = back[i], stored_transposed[i] = back_transposed[i];
}

// ------------------------------------------------------------------------------------------------ asynchronous copies

// A ring of two tiles: the next tile is copied while one is summed. Bytes past `last_bytes` of the last tile become
// zeros.
__global__ void pipelined_sum(const float* in, float* out, int tiles, int last_bytes) {
    __shared__ __align__(16) float ring[2][128];
    int lane = threadIdx.x;
    auto start = [&](int tile) {
        int bytes = tile == tiles - 1 ? max(0, min(16, last_bytes - 16 * lane)) : 16;
        asm volatile(
            "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared_address(&ring[tile % 2][4 * lane])),
            "l"(in + tile * 128 + 4 * lane), "r"(bytes));
        asm volatile("cp.async.commit_group;\n" ::);
    };
    start(0);
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) {
            start(tile + 1);
            asm volatile("cp.async.wait_group %0;\n" ::"n"(1));
        } else {
            asm volatile("cp.async.wait_all;\n" ::: "memory");
        }
        __syncwarp();
        for (int i = 0; i < 4; ++i) sum += ring[tile % 2][4 * ((lane + 1) % 32) + i];
        __syncwarp();
    }
    out[lane] = sum;
}
__global__ void small_copies(const float* in, float* out) {
    __shared__ __align__(16) float tile[96];
    int lane = threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(shared_address(&tile[lane])), "l"(&in[31 - lane]));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;\n" ::"r"(shared_address(&tile[32 + 2 * lane])),
                 "l"(&in[32 + 2 * lane]), "n"(8));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;\n" ::: "memory");
    asm volatile("bar.warp.sync 0xffffffff;\n");
    for (int i = lane; i < 96; i += 32) out[i] = tile[i];
}

// ------------------------------------------------------------------------------------------------- loads and stores

__global__ void memory(const float* in, float* out, unsigned* words, unsigned short* shorts) {
    __shared__ __align__(16) float tile[128];
    int lane = threadIdx.x;
    float4 v;
    float x, y;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(in + 4 * lane));
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(&tile[4 * lane])), "f"(v.w), "f"(v.z),
                 "f"(v.y), "f"(v.x)
                 : "memory");
    __syncwarp();
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2+8];" : "=f"(x), "=f"(y) : "r"(shared_address(&tile[4 * lane])));
    asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" ::"l"(out + 2 * lane), "f"(x), "f"(y) : "memory");
    unsigned byte, old;
    asm volatile("ld.global.u8 %0, [%1+1];" : "=r"(byte) : "l"(words + lane));
    asm volatile("ld.global.ca.u16 %0, [%1];" : "=h"(shorts[lane]) : "l"(words + lane));
    asm volatile("st.global.u32 [%0+128], %1;" ::"l"(words + lane), "r"(byte) : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(out + 64), "f"(0.5f) : "memory");
    asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(words + 64), "r"(2) : "memory");
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(words + 65), "r"(old) : "memory");
    asm volatile("atom.shared.exch.b32 %0, [%1], %2;" : "=r"(old) : "r"(shared_address(&tile[0])), "r"(lane));
    asm volatile("atom.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(words + 66), "r"(7u), "r"(9u));
    if (lane == 0) {
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(words + 67), "r"(5u) : "memory");
        asm volatile("membar.gl; fence.acq_rel.gpu; prefetch.global.L2 [%0];" ::"l"(in));
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(words + 67) : "memory");
        asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];"
                     : "=r"(byte), "=r"(old)
                     : "l"(words + 66)
                     : "memory");
        asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(words + 68), "r"(byte + 16 * old) : "memory");
    }
}

// ------------------------------------------------------------------------------------------------------- arithmetic

__global__ void words(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* out, int n) {
    int i = threadIdx.x;
    unsigned x = a[i], y = b[i], z = c[i];
    unsigned* o = out + i;
    asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(o[0]) : "r"(x), "r"(y), "r"(z));
    asm("lop3.b32 %0, %1, %2, %3, %4;"
        : "=r"(o[n])
        : "r"(x), "n"(0x000f000f), "n"(0x64006400), "n"((0xf0 & 0xcc) | 0xaa));
    asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(o[2 * n]) : "r"(x), "r"(y));
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(o[16 * n]) : "r"(x), "r"(y), "r"(z));
    asm("bfe.u32 %0, %1, 5, 7;" : "=r"(o[3 * n]) : "r"(x));
    asm("bfe.s32 %0, %1, 5, 7;" : "=r"(o[4 * n]) : "r"(x));
    asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(o[5 * n]) : "r"(x), "r"(y));
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(o[6 * n]) : "r"(x), "r"(y), "r"(z));
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(o[7 * n]) : "r"(x), "r"(y), "r"(z));
    asm("mul.hi.u32 %0, %1, %2;" : "=r"(o[8 * n]) : "r"(x), "r"(y));
    unsigned long long wide;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(x), "r"(y));
    o[9 * n] = (unsigned)(wide >> 32) ^ (unsigned)wide;
    asm("shr.s32 %0, %1, %2;" : "=r"(o[10 * n]) : "r"(x), "r"(z & 63));
    asm("shl.b32 %0, %1, %2;" : "=r"(o[11 * n]) : "r"(x), "r"(z & 63));
    asm("popc.b32 %0, %1;" : "=r"(o[12 * n]) : "r"(x));
    asm("{ .reg .pred p, q; setp.lt.u32 p, %1, %2; setp.ge.s32 q, %1, %2; @p add.u32 %0, %3, 1; @!p sub.u32 %0, %3, 1; "
        "@q xor.b32 %0, %0, 0x80; }"
        : "=r"(o[13 * n])
        : "r"(x), "r"(y), "r"(z));
    unsigned short low, high;
    asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(x));
    asm("mov.b32 %0, {%1, %2};" : "=r"(o[14 * n]) : "h"(high), "h"(low));
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(o[15 * n]) : "r"(x), "r"(y), "r"(z));
}

__global__ void floats(const float* a, const float* b, float* out, unsigned* packed, int n) {
    int i = threadIdx.x;
    float x = a[i], y = b[i];
    float* o = out + i;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(o[0]) : "f"(x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(o[n]) : "f"(x));
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(o[2 * n]) : "f"(x * x));
    asm("tanh.approx.f32 %0, %1;" : "=f"(o[3 * n]) : "f"(x));
    asm("fma.rn.f32 %0, %1, %2, 0f3F800000;" : "=f"(o[4 * n]) : "f"(x), "f"(y));
    asm("max.f32 %0, %1, %2;" : "=f"(o[5 * n]) : "f"(x), "f"(y));
    asm("lg2.approx.f32 %0, %1;" : "=f"(o[6 * n]) : "f"(x * x));
    asm("{ .reg .pred p; setp.gt.f32 p, %1, %2; selp.f32 %0, %1, %2, p; }" : "=f"(o[7 * n]) : "f"(x), "f"(y));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed[i]) : "f"(y), "f"(x));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed[n + i]) : "f"(y), "f"(x));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(packed[2 * n + i]) : "f"(x));
    asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(packed[3 * n + i]) : "f"(x * 100.0f));
    unsigned pair = packed[i];
    asm("fma.rn.f16x2 %0, %1, %1, %2;" : "=r"(packed[4 * n + i]) : "r"(pair), "r"(pair));
    asm("add.f16x2 %0, %1, %2;" : "=r"(packed[5 * n + i]) : "r"(pair), "r"(0x3c003c00));
    unsigned short half_bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half_bits) : "f"(x));
    asm("cvt.f32.f16 %0, %1;" : "=f"(o[8 * n]) : "h"(half_bits));
}

// -------------------------------------------------------------------------------------------------- lanes of a warp

__global__ void lanes(unsigned* out) {
    unsigned lane, value, ballot, sum, in_range;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(value) : "r"(lane * 10), "n"(3));
    asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 16, 31, 0xffffffff; selp.u32 %1, 1, 0, p; }"
                 : "=r"(sum), "=r"(in_range)
                 : "r"(lane));
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(ballot)
                 : "r"(lane & 1));
    out[lane] = value;
    out[32 + lane] = sum + 100 * in_range;
    out[64 + lane] = ballot;
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(lane));
    out[96 + lane] = sum;
    unsigned less, x, y;
    asm("mov.u32 %0, %%lanemask_lt; mov.u32 %1, %%ctaid.x; mov.u32 %2, %%ntid.x;" : "=r"(less), "=r"(x), "=r"(y));
    out[128 + lane] = less;
    out[160 + lane] = x * 1000 + y;
}

// Half of the block produces values and the other half consumes them, ordered by named barriers.
__global__ void named_barriers(float* out) {
    __shared__ float slot[64];
    if (threadIdx.x < 64) {
        slot[threadIdx.x] = threadIdx.x * 2.0f;
        asm volatile("bar.arrive %0, %1;" ::"r"(1), "n"(128) : "memory");
    } else {
        asm volatile("bar.sync %0, %1;" ::"r"(1), "r"(128) : "memory");
        out[threadIdx.x - 64] = slot[127 - threadIdx.x];
    }
    asm volatile("bar.sync 0;" ::: "memory");
}

// ----------------------------------------------------------------------------------------------------------- launchers

extern "C" void multiply_integers(const int* a, const int* b, const int* c, int* d, int is_signed, cudaStream_t s) {
    mma_bytes<<<1, 32, 0, s>>>((const uint32_t*)a, (const uint32_t*)b, (const uint32_t*)c, (uint32_t*)d, is_signed);
}
extern "C" void multiply_floats(const int* a, const int* b, const float* c, float* d, int kind, cudaStream_t s) {
    mma_floats<<<1, 32, 0, s>>>((const uint32_t*)a, (const uint32_t*)b, c, d, kind);
}
extern "C" void multiply_halves(const int* a, const int* b, const int* c, int* d, cudaStream_t s) {
    mma_halves<<<1, 32, 0, s>>>((const uint32_t*)a, (const uint32_t*)b, (const uint32_t*)c, (uint32_t*)d);
}
extern "C" void multiply_doubles(const double* a, const double* b, const double* c, double* d, cudaStream_t s) {
    mma_doubles<<<1, 32, 0, s>>>(a, b, c, d);
}
extern "C" void move_matrices(const short* in, int* loaded, int* transposed, int* two, int* one, short* stored,
                              short* stored_transposed, int* moved, cudaStream_t s) {
    matrices<<<1, 32, 0, s>>>(in, (uint32_t*)loaded, (uint32_t*)transposed, (uint32_t*)two, (uint32_t*)one, stored,
                              stored_transposed, (uint32_t*)moved);
}
extern "C" void sum_tiles(const float* in, float* out, int tiles, int last_bytes, cudaStream_t s) {
    pipelined_sum<<<1, 32, 0, s>>>(in, out, tiles, last_bytes);
}
extern "C" void copy_small(const float* in, float* out, cudaStream_t s) { small_copies<<<1, 32, 0, s>>>(in, out); }
extern "C" void load_and_store(const float* in, float* out, int* words, short* shorts, cudaStream_t s) {
    memory<<<1, 32, 0, s>>>(in, out, (unsigned*)words, (unsigned short*)shorts);
}
extern "C" void compute_words(const int* a, const int* b, const int* c, int* out, int n, cudaStream_t s) {
    words<<<1, n, 0, s>>>((const unsigned*)a, (const unsigned*)b, (const unsigned*)c, (unsigned*)out, n);
}
extern "C" void compute_floats(const float* a, const float* b, float* out, int* packed, int n, cudaStream_t s) {
    floats<<<1, n, 0, s>>>(a, b, out, (unsigned*)packed, n);
}
extern "C" void talk(int* out, cudaStream_t s) { lanes<<<1, 32, 0, s>>>((unsigned*)out); }
extern "C" void hand_over(float* out, cudaStream_t s) { named_barriers<<<1, 128, 0, s>>>(out); }
