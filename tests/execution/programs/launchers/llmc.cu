// A main function for FILE of llm.c's dev/cuda. It compares the kernel with the given number with the CPU reference in
// FILE.
#define main their_main
#include FILE
#undef main

const int B = 2, T = 24, C = 128, V = 512, NH = 4, BLOCK = 64;

template <typename T>
T* on_device(const T* x, size_t n) {
    T* there;
    cudaCheck(cudaMalloc(&there, n * sizeof(T)));
    if (x) cudaCheck(cudaMemcpy(there, x, n * sizeof(T), cudaMemcpyHostToDevice));
    return there;
}

floatX* converted(const float* x, size_t n) {
    floatX* there = on_device<floatX>(nullptr, n);
    cudaCheck(memcpy_convert(there, const_cast<float*>(x), n));
    return there;
}

float* to_fill(size_t n) { return (float*)malloc(n * sizeof(float)); }

int main(int argc, char** argv) {
    const int which = argc > 1 ? atoi(argv[1]) : 1;
    srand(0);
    cudaDeviceProp properties;
    cudaCheck(cudaGetDeviceProperties(&properties, 0));
    cuda_num_SMs = properties.multiProcessorCount;
    cuda_threads_per_SM = properties.maxThreadsPerMultiProcessor;
    const int n = B * T * C;
#if defined(LAYERNORM)
    float *out = to_fill(n), *mean = to_fill(B * T), *rstd = to_fill(B * T);
    float *inp = make_random_float(n), *weight = make_random_float(C), *bias = make_random_float(C);
    layernorm_forward_cpu(out, mean, rstd, inp, weight, bias, B, T, C);
    float *d_out = on_device<float>(nullptr, n), *d_mean = on_device<float>(nullptr, B * T);
    float* d_rstd = on_device<float>(nullptr, B * T);
    layernorm_forward(which, d_out, d_mean, d_rstd, on_device(inp, n), on_device(weight, C), on_device(bias, C), B, T,
                      C, BLOCK);
    validate_result(d_out, out, "out", n, 1e-5f);
    validate_result(d_mean, mean, "mean", B * T, 1e-5f);
    validate_result(d_rstd, rstd, "rstd", B * T, 1e-5f);
#elif defined(SOFTMAX)
    float *out = to_fill(B * T * V), *inp = make_random_float(B * T * V);
    softmax_forward_cpu(out, inp, B * T, V);
    float* d_out = on_device<float>(nullptr, B * T * V);
    softmax_forward(which, d_out, on_device(inp, B * T * V), B * T, V, BLOCK);
    validate_result(d_out, out, "out", B * T * V, 1e-4f);
#elif defined(GELU)
    float *out = to_fill(n), *inp = make_random_float(n);
    gelu_forward_cpu(out, inp, n);
    floatX* d_out = on_device<floatX>(nullptr, n);
    gelu_forward(which, d_out, converted(inp, n), B, T, C, BLOCK);
    validate_result(d_out, out, "out", n, 1e-2f);
#elif defined(GELU_BACKWARD)
    float *out = to_fill(n), *inp = make_random_float(n), *dout = make_random_float(n);
    gelu_backward_cpu(out, inp, dout, n);
    floatX* d_out = on_device<floatX>(nullptr, n);
    gelu_backward(which, d_out, converted(inp, n), converted(dout, n), B, T, C, BLOCK);
    validate_result(d_out, out, "dinp", n, 1e-2f);
#elif defined(RESIDUAL)
    float *out = to_fill(n), *x = make_random_float(n), *y = make_random_float(n);
    residual_forward_cpu(out, x, y, n);
    floatX* d_out = on_device<floatX>(nullptr, n);
    residual_forward(which, d_out, converted(x, n), converted(y, n), n, BLOCK);
    validate_result(d_out, out, "out", n, 1e-2f);
#elif defined(ENCODER)
    int* inp = make_random_int(B * T, V);
    float *out = to_fill(n), *wte = make_random_float(V * C), *wpe = make_random_float(T * C);
    encoder_forward_cpu(out, inp, wte, wpe, B, T, C);
    floatX* d_out = on_device<floatX>(nullptr, n);
    encoder_forward(which, d_out, on_device(inp, B * T), converted(wte, V * C), converted(wpe, T * C), B, T, C, BLOCK);
    validate_result(d_out, out, "out", n, 1e-2f);
#elif defined(CROSSENTROPY)
    int* targets = make_random_int(B * T, V);
    float *out = to_fill(B * T), *probs = make_random_float_01(B * T * V);
    crossentropy_forward_cpu(out, probs, targets, B, T, V);
    float* d_out = on_device<float>(nullptr, B * T);
    crossentropy_forward(which, d_out, on_device(probs, B * T * V), on_device(targets, B * T), B, T, V, BLOCK);
    validate_result(d_out, out, "losses", B * T, 1e-5f);
#elif defined(ATTENTION)
    cublasCreate(&cublas_handle);
    float *out = to_fill(n), *preatt = to_fill(B * NH * T * T), *att = to_fill(B * NH * T * T);
    float* inp = make_random_float(3 * n);
    attention_forward_cpu(out, preatt, att, inp, B, T, C, NH);
    auto scratch = [](size_t size) { return on_device<float>(nullptr, size); };
    float* d_out = scratch(n);
    attention_forward(which, d_out, scratch(B * NH * T), scratch(n), scratch(3 * n), scratch(B * NH * T * T),
                      scratch(B * NH * T * T), on_device(inp, 3 * n), B, T, C, NH, BLOCK);
    validate_result(d_out, out, "out", n, which <= 4 ? 1e-3f : 1e-2f);
#endif
    printf("PASS\n");
}
