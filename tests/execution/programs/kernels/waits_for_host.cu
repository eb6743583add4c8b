// Kernels that wait for a write by the host while they run, which is not simulated.
// Other kernels look similar, but never end, whatever the host writes. argv[1] selects the case.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

struct Shared {
    int flag;
    int count;
};

__global__ void until_the_host_writes(volatile Shared* shared) {
    if (threadIdx.x == 0) {
        while (shared->flag == 0) {  // waits for the host
        }
    }
    __syncthreads();
    shared->count = 1;
}

__global__ void until_the_host_adds(Shared* shared) {
    atomicAdd(&shared->count, 1);
    while (atomicAdd(&shared->flag, 0) == 0) {  // also waits for the host
    }
}

__global__ void sleep_until_the_host_writes(volatile Shared* shared) {
    while (shared->flag == 0) __nanosleep(100);  // sleeps until the host writes
}

__global__ void lock(Shared* shared) {
    while (atomicCAS(&shared->flag, 0, 1) != 0) {  // this thread holds the lock
    }
    if (threadIdx.x == 40) atomicExch(&shared->flag, 0);
}

__global__ void meet(volatile Shared* shared) {
    shared->flag = 1;
    __threadfence();
    while (shared->flag != 2) {  // no code writes 2
    }
}

__global__ void turn(Shared* shared) {
    if (threadIdx.x == 0) shared->flag = 1;
    __syncthreads();
    while (*(volatile int*)&shared->flag != 2) {  // no code writes 2 here
    }
}

__global__ void until_the_word_past_the_end_changes(volatile Shared* shared) {
    while (shared[1].flag == 0) {
    }
}

__global__ void print_without_end() {
    for (;;) printf("%c", '.');
}

int main(int argc, char** argv) {
    const char* how = argv[1];
    Shared *shared, *of_device;
    if (strchr(how, 'p'))
        cudaMallocHost(&shared, sizeof *shared);
    else
        cudaMallocManaged(&shared, sizeof *shared);
    cudaMalloc(&of_device, sizeof *of_device);
    cudaMemset(of_device, 0, sizeof *of_device);
    shared->flag = shared->count = 0;
    printf("begins\n");
    switch (how[0]) {
        case 'w':
            until_the_host_writes<<<1, 64>>>(shared);
            break;
        case 'a':
            until_the_host_adds<<<2, 32>>>(shared);
            break;
        case 's':
            sleep_until_the_host_writes<<<2, 32>>>(shared);
            break;
        case 'e':
            until_the_word_past_the_end_changes<<<1, 1>>>(shared);
            break;
        case 'o':
            print_without_end<<<1, 64>>>();
            break;
        case 'd':
            until_the_host_writes<<<1, 64>>>(of_device);
            break;
        case 'l':
            lock<<<1, 32>>>(shared);
            break;
        case 'm':
            meet<<<1, 1>>>(shared);
            break;
        case 't':
            turn<<<1, 32>>>(shared);
            break;
    }
    shared->flag = 1;
    cudaDeviceSynchronize();
    printf("ends\n");
    return 0;
}
