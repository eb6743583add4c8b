// A main program for one kernel of the corpus, so that compute-sanitizer checks only that kernel.
//
// Compile it together with the corpus file: -DCORPUS=\"file.cu\" -DCORPUS_COUNT=1000
#include CORPUS

#include <unistd.h>

#include <cstdio>
#include <vector>

// Allocate n elements of x, each byte 1, and n of out.
template <typename X, typename Y>
static void call(void (*launcher)(X* x, Y* out, int n, cudaStream_t stream), int n) {
    std::vector<unsigned char> ones(n * sizeof(X), 1), result(n * sizeof(Y));
    void *x = nullptr, *out = nullptr;
    cudaMalloc(&x, ones.size());
    cudaMalloc(&out, result.size());
    cudaMemcpy(x, ones.data(), ones.size(), cudaMemcpyHostToDevice);
    launcher(static_cast<X*>(x), static_cast<Y*>(out), n, nullptr);
    const cudaError_t launch = cudaGetLastError();
    const cudaError_t wait = cudaDeviceSynchronize();
    std::printf("launch: %s, run: %s\n", cudaGetErrorName(launch), cudaGetErrorName(wait));
    if (wait == cudaSuccess)
        cudaMemcpy(result.data(), out, result.size(), cudaMemcpyDeviceToHost);  // reads each element
}

int main() {
    alarm(10);  // a kernel that hangs ends with its process
    call(run, CORPUS_COUNT);
    return 0;
}
