// What a process does to itself before it meets code that nobody trusts: limits, a view of the file system, and the
// system calls that are left. Nothing of it can be undone by the process or by what it starts.
#pragma once

#include <stddef.h>

namespace confine {

struct Limits {
    size_t megabytes;    // address space
    size_t cpu_seconds;  // processor time
    size_t file_megabytes;
    size_t files;
    size_t processes;
};

// Sets the limits; 0 leaves one as it is. No core files, no gain of rights, dies with its parent.
void limit(const Limits& limits);

// Only these files and folders can be opened from now on (Landlock): read and run, or also write.
// False when the kernel has no Landlock.
bool only_files(const char* const* readable, int reads, const char* const* writable, int writes);

// Only the system calls that a kernel on the simulator needs: no processes, threads, sockets, signals to others, no
// file is opened for writing; files other than 1 and 2 are written by confine_call alone. The rest fails with EPERM.
bool only_computing();

// All system calls except those by which a process reaches others, or changes what files are: for kernels on a GPU, whose
// driver needs threads, devices and sockets of its own.
bool only_computing_on_gpu();

// All system calls except those that reach beyond the process's own files and children: for compilers.
bool no_reaching_out();

}  // namespace confine

// A system call: its number and arguments; -errno when it fails. For the program's own files after only_computing().
extern "C" long confine_call(long number, long a, long b, long c, long d, long e, long f);
