// The launcher computes with long double, which g++ keeps in x87 registers.
static long double values[4] = {1, 2, 3, 4};
struct Pair {
    long double a, b;
};
static Pair sum(Pair a, Pair b) { return {a.a + b.a, a.b + b.b}; }
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    Pair pair = sum({values[n & 3], values[1]}, {values[2], values[3]});
    long double copy = pair.a;
    if (copy + pair.b > 0) reward(x, out, n, stream);
}
