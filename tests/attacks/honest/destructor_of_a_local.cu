// The destructor of a local variable launches the kernel.
struct Launcher {
    const float* x;
    float* out;
    int n;
    cudaStream_t stream;
    ~Launcher() { reward(x, out, n, stream); }
};
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { Launcher launcher{x, out, n, stream}; }
