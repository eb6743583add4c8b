// Functions of the sandbox for worker.py, which calls them with ctypes.
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "confine.h"

// Limits this process and, in the tiers bwrap and landlock, restricts its files and system calls. Returns an error
// message, or null. `paths` are the only readable files in the tier landlock.
extern "C" const char* confine_python(size_t megabytes, size_t cpu_seconds, const char* tier, const char* const* paths,
                                      int count) {
    confine::limit({megabytes, cpu_seconds, 16, 64, 0});
    if (strcmp(tier, "none") == 0) return nullptr;
    if (strcmp(tier, "landlock") == 0 && !confine::only_files(paths, count, nullptr, 0))
        return "the system has no Landlock";
    return confine::only_computing() ? nullptr : "the system has no seccomp";
}

// Writes to a file that is already open. The filter of system calls allows it from confine_call only.
extern "C" long confine_write(int file, const void* bytes, size_t size) {
    return confine_call(SYS_write, file, reinterpret_cast<long>(bytes), static_cast<long>(size), 0, 0, 0);
}
