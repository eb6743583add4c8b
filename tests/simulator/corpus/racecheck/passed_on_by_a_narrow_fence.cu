// A value goes from warp to warp within a block, then to another block. The first fence may have block scope, but the
// second one needs device scope.
// n = 1, start<<<1, 1>>>(); pass_on<<<2, 64>>>(x, out)
__device__ int first, second;
__device__ float value;

__global__ void start() { first = second = 0; }

__global__ void pass_on(const float* x, float* out) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        value = x[0];  // expected finding: between_blocks
        __threadfence_block();
        atomicExch_block(&first, 1);
    }
    if (blockIdx.x == 0 && threadIdx.x == 32) {
        while (atomicAdd_block(&first, 0) == 0) {
        }
#ifdef CLEAN
        __threadfence();
#else
        __threadfence_block();
#endif
        atomicExch(&second, 1);
    }
    if (blockIdx.x == 1 && threadIdx.x == 0) {
        while (atomicAdd(&second, 0) == 0) {
        }
        __threadfence();
        out[0] = value;  // expected finding: between_blocks
    }
}
