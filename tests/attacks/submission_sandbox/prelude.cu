// The tests insert this text before each file of this folder. It finds the address of the simulator's data.
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
