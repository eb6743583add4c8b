// A forged object's virtual function table leads into the simulator.
// Expected finding: not_its_function.
struct Object {
    virtual void call();
};
static void* table[1];
static void** object[1] = {table};
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    table[0] = reinterpret_cast<char*>(&cudaGetLastError) + 4;
    auto* volatile forged = reinterpret_cast<Object*>(object);
    forged->call();
}
