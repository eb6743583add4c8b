// A main program for one kernel of the corpus, so that compute-sanitizer checks only that kernel.
//
// Compile it together with the corpus file: -DCORPUS=\"file.cu\" -DCORPUS_ELEMENT=float -DCORPUS_COUNT=1000
#include CORPUS

#include <unistd.h>

#include <cstdio>
#include <vector>

int main() {
    alarm(10);  // a kernel that hangs ends with its process
    std::vector<unsigned char> host(CORPUS_COUNT * sizeof(CORPUS_ELEMENT), 1);
    CORPUS_ELEMENT *x = nullptr, *out = nullptr;
    cudaMalloc(&x, host.size());
    cudaMalloc(&out, host.size());
    cudaMemcpy(x, host.data(), host.size(), cudaMemcpyHostToDevice);
    run(x, out, CORPUS_COUNT, nullptr);
    const cudaError_t launch = cudaGetLastError();
    const cudaError_t wait = cudaDeviceSynchronize();
    std::printf("launch: %s, run: %s\n", cudaGetErrorName(launch), cudaGetErrorName(wait));
    if (wait == cudaSuccess) cudaMemcpy(host.data(), out, host.size(), cudaMemcpyDeviceToHost);  // reads every element
    return 0;
}
