// A kernel reads past the end of its input by a member of a union that is larger than a float.
// Expected finding: out_of_bounds.
union Word {
    float number;
    double pair;
};
__device__ float read(const float* x, int) { return float(reinterpret_cast<const Word*>(x)->pair); }
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
