// Functions by which a process confines itself before it runs untrusted code: resource limits, a restricted file
// system, and a filter of system calls. Neither the process nor its children can undo them.
#pragma once

#include <stddef.h>

namespace confine {

struct Limits {
    size_t megabytes;    // limit of the address space
    size_t cpu_seconds;  // limit of the processor time
    size_t file_megabytes;
    size_t files;
    size_t processes;
};

// Sets the limits; a limit of 0 is not changed. It also disables core files and new privileges, and lets the system kill
// this process when its parent ends.
void limit(const Limits& limits);

// Lets the process open only these files and folders (by Landlock). `readable` ones can be read and executed, `writable`
// ones can also be written. Returns false if the kernel has no Landlock.
bool only_files(const char* const* readable, int reads, const char* const* writable, int writes);

// Allows only the system calls that a kernel on the simulator needs; other calls fail with EPERM. The process cannot
// start processes or threads, use sockets, send signals to other processes, or open files for writing. It can write to
// stdout and stderr. Only confine_call can write to other files that are already open.
bool only_computing();

// Forbids the system calls that affect other processes or change file metadata. It is for kernels on a GPU: the GPU's
// driver needs threads, devices and sockets, so an allowlist of calls would be too long.
bool only_computing_on_gpu();

// Forbids the system calls that affect anything but the process's own files and children. It is for compilers and for
// programs of `grader run --jail`.
bool no_reaching_out();

}  // namespace confine

// Executes a system call; returns -errno on failure. After only_computing(), the program can write to its own files only
// through this function.
extern "C" long confine_call(long number, long a, long b, long c, long d, long e, long f);
