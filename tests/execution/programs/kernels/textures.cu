// Textures and surfaces. test_textures.py has the expected values of each printed line.
#include <cstdio>
#include <cstring>
#include <vector>

template <typename T>
__global__ void along_x(cudaTextureObject_t texture, const float* x, T* out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = tex2D<T>(texture, x[i], 1.5f);
}

__global__ void fetch(cudaTextureObject_t texture, float* out) {
    float value;
    tex1Dfetch(&value, texture, (int)threadIdx.x - 1);
    out[threadIdx.x] = value;
}

__global__ void volume(cudaTextureObject_t texture, float* out) { out[0] = tex3D<float>(texture, 1.25f, 1.0f, 0.75f); }

__global__ void layers(cudaTextureObject_t texture, float* out) {
    out[threadIdx.x] = tex2DLayered<float>(texture, 0.5f, 0.5f, threadIdx.x);
}

__global__ void invert(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width) {
    int x = threadIdx.x, y = blockIdx.x;
    uchar4 pixel = surf2Dread<uchar4>(from, x * 4, y);
    surf2Dwrite(make_uchar4(255 - pixel.x, 255 - pixel.y, 255 - pixel.z, pixel.w), to, (width - 1 - x) * 4, y);
    if (x == 0 && y == 0) surf2Dwrite(pixel, to, width * 4, 0, cudaBoundaryModeZero);
}

__global__ void off_the_surface(cudaSurfaceObject_t to) { surf2Dwrite(1.0f, to, 64, 0); }

cudaTextureObject_t texture_of(const cudaResourceDesc& resource, cudaTextureAddressMode mode, bool linear,
                               bool normalized, bool floats = false) {
    cudaTextureDesc desc;
    memset(&desc, 0, sizeof desc);
    for (auto& one : desc.addressMode) one = mode;
    desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.readMode = floats ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    desc.normalizedCoords = normalized;
    desc.borderColor[0] = -1;
    cudaTextureObject_t texture = 0;
    cudaCreateTextureObject(&texture, &resource, &desc, nullptr);
    return texture;
}

cudaResourceDesc of_array(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

template <typename T>
void show(const char* name, const T* device, int n) {
    std::vector<T> values(n);
    cudaMemcpy(values.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
    printf("%s", name);
    for (T value : values) printf(" %g", (double)value);
    printf("\n");
}

int main(int argc, char**) {
    const int width = 4, height = 3, n = 10;
    float image[height][width], places[n] = {-3.3f, -0.2f, 0, 0.5f, 1, 1.3f, 2.75f, 3.9f, 4.1f, 9};
    for (int i = 0; i < width * height; ++i) image[i / width][i % width] = float(i * i);
    float *x, *out;
    cudaMalloc(&x, sizeof places);
    cudaMalloc(&out, n * sizeof(float));
    cudaMemcpy(x, places, sizeof places, cudaMemcpyHostToDevice);

    cudaArray_t array;
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaMallocArray(&array, &channels, width, height);
    if (argc == 1 || argc > 2)
        cudaMemcpy2DToArray(array, 0, 0, image, width * 4, width * 4, height, cudaMemcpyHostToDevice);
    for (bool linear : {false, true}) {
        for (auto mode : {cudaAddressModeClamp, cudaAddressModeBorder}) {
            along_x<<<1, 32>>>(texture_of(of_array(array), mode, linear, false), x, out, n);
            show(linear ? "linear" : "point", out, n);
        }
    }
    for (float& place : places) place /= width;
    cudaMemcpy(x, places, sizeof places, cudaMemcpyHostToDevice);
    for (auto mode : {cudaAddressModeWrap, cudaAddressModeMirror}) {
        cudaTextureObject_t texture = texture_of(of_array(array), mode, true, true);
        along_x<<<1, 32>>>(texture, x, out, n);  // y is normalized as well: 1.5 is the middle of a row
        show("normalized", out, n);
        cudaDestroyTextureObject(texture);
    }

    // Bytes in pitched memory, read as integers and as floats between 0 and 1.
    unsigned char *rows, bytes[2][16];
    size_t pitch;
    for (int i = 0; i < 32; ++i) bytes[i / 16][i % 16] = (unsigned char)(8 * i);
    cudaMallocPitch(&rows, &pitch, 16, 2);
    cudaMemcpy2D(rows, pitch, bytes, 16, 16, 2, cudaMemcpyHostToDevice);
    cudaResourceDesc pitched = {};
    pitched.resType = cudaResourceTypePitch2D;
    pitched.res.pitch2D.devPtr = rows;
    pitched.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
    pitched.res.pitch2D.width = 16;
    pitched.res.pitch2D.height = 2;
    pitched.res.pitch2D.pitchInBytes = pitch;
    for (float& place : places) place *= width;
    cudaMemcpy(x, places, sizeof places, cudaMemcpyHostToDevice);
    unsigned char* byte_out;
    cudaMalloc(&byte_out, n);
    along_x<<<1, 32>>>(texture_of(pitched, cudaAddressModeClamp, false, false), x, byte_out, n);
    show("bytes", byte_out, n);
    along_x<<<1, 32>>>(texture_of(pitched, cudaAddressModeClamp, true, false, true), x, out, n);
    show("floats", out, n);

    // Linear memory: reads outside return zeros.
    cudaResourceDesc linear = {};
    linear.resType = cudaResourceTypeLinear;
    linear.res.linear.devPtr = x;
    linear.res.linear.desc = channels;
    linear.res.linear.sizeInBytes = 4 * sizeof(float);
    fetch<<<1, 6>>>(texture_of(linear, cudaAddressModeClamp, false, false), out);
    show("fetch", out, 6);

    // 3D and layered arrays, filled by cudaMemcpy3D.
    for (unsigned flags : {cudaArrayDefault, cudaArrayLayered}) {
        cudaArray_t cube;
        cudaExtent extent = make_cudaExtent(2, 3, 2);
        cudaMalloc3DArray(&cube, &channels, extent, flags);
        cudaMemcpy3DParms copy = {};
        copy.srcPtr = make_cudaPitchedPtr(image, 2 * sizeof(float), 2, 3);
        copy.dstArray = cube;
        copy.extent = extent;
        copy.kind = cudaMemcpyHostToDevice;
        cudaMemcpy3D(&copy);
        cudaTextureObject_t texture = texture_of(of_array(cube), cudaAddressModeClamp, !flags, false);
        if (flags)
            layers<<<1, 3>>>(texture, out);
        else
            volume<<<1, 1>>>(texture, out);
        show(flags ? "layers" : "volume", out, flags ? 3 : 1);
        cudaFreeArray(cube);
    }

    // Surfaces.
    cudaArray_t from, to;
    cudaChannelFormatDesc colors = cudaCreateChannelDesc<uchar4>();
    cudaMallocArray(&from, &colors, 4, 2, cudaArraySurfaceLoadStore);
    cudaMallocArray(&to, &colors, 4, 2, cudaArraySurfaceLoadStore);
    cudaMemcpy2DToArray(from, 0, 0, bytes, 16, 16, 2, cudaMemcpyHostToDevice);
    cudaSurfaceObject_t source, target;
    cudaResourceDesc resource = of_array(from);
    cudaCreateSurfaceObject(&source, &resource);
    resource = of_array(to);
    cudaCreateSurfaceObject(&target, &resource);
    invert<<<2, 4>>>(source, target, 4);
    unsigned char back[32];
    cudaMemcpy2DFromArray(back, 16, to, 0, 0, 16, 2, cudaMemcpyDeviceToHost);
    printf("surface");
    for (unsigned char value : back) printf(" %d", value);
    printf("\n");
    if (argc > 2) off_the_surface<<<1, 1>>>(target);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
