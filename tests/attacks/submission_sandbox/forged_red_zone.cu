// A kernel forges the record of a red zone (guard bytes beside an array). The record's pointer to the array's name
// points to the simulator's data.
// Expected finding: not_its_memory.
__global__ void there(long name, unsigned first) {
    volatile unsigned words[24] = {};
    volatile decltype(first)* p = words + blockIdx.x;
    long check = ~name ^ 16 ^ static_cast<long>(1ul << 63);  // the red zone follows this array
    for (unsigned k = first; k < first + 12; ++k) p[k] = 0x5edc0de5u;
    p[first + 12] = static_cast<unsigned>(name), p[first + 13] = static_cast<unsigned>(name >> 32);
    p[first + 14] = static_cast<unsigned>(check), p[first + 15] = static_cast<unsigned>(check >> 32);
    p[first] = 1;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    there<<<1, 1, 0, stream>>>(reinterpret_cast<long>(simulators_data()), 4);
}
