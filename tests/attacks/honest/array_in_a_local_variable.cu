// Receives arrays and pitched memory in local variables.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMallocArray(&array, &format, 16, 4);
    cudaFreeArray(array);
    cudaPitchedPtr pitched;
    cudaMalloc3D(&pitched, make_cudaExtent(64, 2, 2));
    cudaFree(pitched.ptr);
    reward(x, out, n, stream);
}
