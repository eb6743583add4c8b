// Device heap: malloc, free, new and delete in kernels, correct and incorrect. argv[1] selects the case.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

struct Base {
    __device__ virtual ~Base() {}
    __device__ virtual int value() const = 0;
};

struct Kept : Base {
    int* counter;
    int number;
    __device__ Kept(int* c, int n) : counter(c), number(n) {}
    __device__ ~Kept() override { atomicAdd(counter, 1); }
    __device__ int value() const override { return number; }
};

struct Member {
    int number = 7;
    __device__ ~Member();
};
__device__ int members_ended;
__device__ Member::~Member() { atomicAdd(&members_ended, 1); }

__device__ Base* kept[64];

__global__ void make(int* counter) { kept[threadIdx.x] = new Kept(counter, threadIdx.x); }

__global__ void use(int* sum) {
    atomicAdd(sum, kept[threadIdx.x]->value());
    int* row = new int[threadIdx.x + 1];
    for (unsigned i = 0; i <= threadIdx.x; ++i) row[i] = 1;
    atomicAdd(sum, row[threadIdx.x]);
    delete[] row;
    Member* members = new Member[3];
    atomicAdd(sum, members[2].number);
    delete[] members;
    int* plain = (int*)malloc(sizeof(int));
    *plain = 1;
    atomicAdd(sum, *plain);
    free(plain);
}

__global__ void end() { delete kept[threadIdx.x]; }

__global__ void too_large(int* out) {
    Kept* many = new Kept[1]{Kept(out, 1)};
    char* all = new char[9 << 20];
    char* rest = static_cast<char*>(malloc(9 << 20));
    out[0] = all == nullptr;
    out[1] = rest == nullptr;
    delete[] all;
    free(rest);
    delete[] many;
}

__global__ void past_the_end() {
    int* row = new int[4];
    row[4] = 1;  // one past the end
    delete[] row;
}

__global__ void after_the_end(int* out) {
    int* one = new int(3);
    delete one;
    out[0] = *one;  // use after delete
}

__device__ int* given;

__global__ void twice() {
    given = static_cast<int*>(malloc(4));
    free(given);
    free(given);  // double free
}

__global__ void not_of_the_heap(int* out) {
    delete out;  // delete of memory from cudaMalloc
}

__global__ void never_written(int* out) {
    int* row = new int[4];
    out[0] = row[2];  // uninitialized
    delete[] row;
}

int main(int argc, char** argv) {
    const char* how = argv[1];
    int *device, host[2] = {0, 0};
    cudaMalloc(&device, sizeof host);
    cudaMemset(device, 0, sizeof host);
    if (strcmp(how, "right") == 0 || strcmp(how, "leak") == 0) {
        make<<<1, 64>>>(device);
        use<<<1, 64>>>(device + 1);
        if (strcmp(how, "right") == 0) end<<<1, 64>>>();
    } else if (strcmp(how, "full") == 0) {
        too_large<<<1, 1>>>(device);
    } else if (strcmp(how, "larger") == 0) {
        cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20);
        too_large<<<1, 1>>>(device);
    } else if (strcmp(how, "past") == 0) {
        past_the_end<<<1, 1>>>();
    } else if (strcmp(how, "after") == 0) {
        after_the_end<<<1, 1>>>(device);
    } else if (strcmp(how, "twice") == 0) {
        twice<<<1, 1>>>();
    } else if (strcmp(how, "other") == 0) {
        not_of_the_heap<<<1, 1>>>(device);
    } else if (strcmp(how, "garbage") == 0) {
        never_written<<<1, 1>>>(device);
    }
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    int ended = 0;
    cudaMemcpyFromSymbol(&ended, members_ended, sizeof ended);
    printf("%d %d %d\n", host[0], host[1], ended);
    cudaFree(device);
    return 0;
}
