// How a process confines itself before it runs untrusted code: limits, a restricted file system, and a filter of system
// calls. Neither the process nor its children can undo this.
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

// Sets the limits; 0 leaves one unchanged. Also: no core files, no new privileges, exit with the parent.
void limit(const Limits& limits);

// Restricts opening to these files and folders (Landlock): reading and executing, or also writing. Returns false if the
// kernel has no Landlock.
bool only_files(const char* const* readable, int reads, const char* const* writable, int writes);

// Allows only the system calls that a kernel on the simulator needs: no processes, threads, sockets, signals to other
// processes, or opening files for writing. Files other than 1 and 2 can be written through confine_call only. Other
// calls fail with EPERM.
bool only_computing();

// Forbids the system calls that reach other processes or change file metadata: for kernels on a GPU, whose driver needs
// threads, devices and sockets of its own.
bool only_computing_on_gpu();

// Forbids the system calls that reach beyond the process's own files and children: for compilers.
bool no_reaching_out();

}  // namespace confine

// Executes a system call with its arguments; returns -errno on failure. For the program's own files after
// only_computing().
extern "C" long confine_call(long number, long a, long b, long c, long d, long e, long f);
