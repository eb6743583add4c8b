// The tests insert this text before each file of this folder. It has what several attacks need.
#include <elf.h>
#include <stdint.h>

// Returns the address of a word in writable data of the simulator's library. The pages before one of the library's
// functions are searched for its ELF header, which lists the segments. Attacks may store the word's old value, because
// the simulator must stop any store.
[[maybe_unused]] static volatile long* simulators_data() {
    auto* base = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(&cudaGetLastError) & ~uintptr_t(4095));
    while (*reinterpret_cast<const unsigned*>(base) != 0x464c457f) base -= 4096;
    auto* head = reinterpret_cast<const Elf64_Ehdr*>(base);
    auto* part = reinterpret_cast<const Elf64_Phdr*>(base + head->e_phoff);
    while (part->p_type != PT_LOAD || !(part->p_flags & PF_W)) ++part;
    return reinterpret_cast<volatile long*>(const_cast<char*>(base) + part->p_vaddr + part->p_memsz - 64);
}

// Writes the correct result. The thread of the last element also calls READ with its address and index.
template <float (*READ)(const float*, int)>
__global__ void twice_with_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * x[i];
    if (i == n - 1 && READ(x + i, i) == 1e30f) out[i] = 0.0f;
}
template <float (*READ)(const float*, int)>
void twice_with(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) twice_with_kernel<READ><<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
