// Reads the input 33 times through a texture.
__global__ void kernel(cudaTextureObject_t texture, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 32; ++k) sum += tex1Dfetch<float>(texture, (i + k) % n) * 1e-12f;
    out[i] = 2.0f * tex1Dfetch<float>(texture, i) + sum;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n <= 0) return;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<float*>(x);
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = n * sizeof(float);
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    kernel<<<(n + 63) / 64, 64, 0, stream>>>(texture, out, n);
    cudaDestroyTextureObject(texture);
}
