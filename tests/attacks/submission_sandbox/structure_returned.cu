// A function returns a structure, which is stored in the simulator's data.
// Expected finding: not_its_memory.
struct Four {
    long values[4];
};
__attribute__((noinline)) static Four four(long first) { return {{first, first + 1, first + 2, first + 3}}; }
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    auto place = reinterpret_cast<Four*>(const_cast<long*>(simulators_data()));
    *place = four(n);
}
