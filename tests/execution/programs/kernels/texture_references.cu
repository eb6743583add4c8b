// Texture references, a feature that CUDA 12 removed: one of each kind, read at several positions.
#include <stdio.h>

texture<float, 2, cudaReadModeElementType> image;
static texture<uchar4, 1, cudaReadModeNormalizedFloat> colors;
texture<int> numbers;
texture<float2, cudaTextureType2D> rows(1, cudaFilterModePoint, cudaAddressModeWrap);

__device__ int number(int i) { return tex1Dfetch(numbers, i); }

__global__ void read_all(float* out) {
    float x = threadIdx.x + 0.5f;
    float4 color = tex1D(colors, x);
    float* mine = out + 5 * threadIdx.x;
    mine[0] = tex2D(image, x + 0.5f, 0.5f);  // between two texels
    mine[1] = color.x;
    mine[2] = color.w;
    mine[3] = number(threadIdx.x);
    mine[4] = tex2D(rows, x / 4 + 1, 0.75f).y;  // normalized coordinates, wrapped around once
}

int main() {
    float* out;
    int* integers;
    float2* pairs;
    size_t pitch, offset = 1;
    cudaMallocManaged(&out, 20 * sizeof(float));
    cudaMallocManaged(&integers, 3 * sizeof(int));
    cudaMallocPitch(&pairs, &pitch, 4 * sizeof(float2), 2);
    for (int i = 0; i < 3; ++i) integers[i] = 10 + i;
    float texels[4] = {1, 2, 4, 8}, all[16];
    uchar4 bytes[4] = {{0, 0, 0, 255}, {51, 0, 0, 204}, {102, 0, 0, 153}, {255, 0, 0, 0}};
    for (int i = 0; i < 16; ++i) all[i] = i;
    cudaArray *line, *palette;
    cudaMallocArray(&line, &image.channelDesc, 4, 1);
    cudaMallocArray(&palette, &colors.channelDesc, 4);
    cudaMemcpyToArray(line, 0, 0, texels, sizeof texels, cudaMemcpyHostToDevice);
    cudaMemcpyToArray(palette, 0, 0, bytes, sizeof bytes, cudaMemcpyHostToDevice);
    cudaMemcpy2D(pairs, pitch, all, 4 * sizeof(float2), 4 * sizeof(float2), 2, cudaMemcpyHostToDevice);
    image.filterMode = cudaFilterModeLinear;
    image.addressMode[0] = cudaAddressModeClamp;
    cudaBindTextureToArray(image, line, image.channelDesc);
    cudaBindTextureToArray(&colors, palette, &colors.channelDesc);
    cudaBindTexture(&offset, numbers, integers, 3 * sizeof(int));
    cudaBindTexture2D(NULL, rows, pairs, 4, 2, pitch);
    read_all<<<1, 4>>>(out);
    if (cudaDeviceSynchronize() != cudaSuccess || offset != 0) return 1;
    for (int i = 0; i < 20; ++i) printf("%g ", out[i]);
    cudaUnbindTexture(numbers);
    return cudaUnbindTexture(&rows) != cudaSuccess;
}
