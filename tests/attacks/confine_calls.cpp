// Prints the system calls that the functions of confine.h would make. The linker's --wrap redirects the calls here.
//
// The arguments are the name of a filter (`computing`, `gpu` or `compiler`),
// `limits MEGABYTES SECONDS FILE_MEGABYTES FILES PROCESSES`,
// or `files VERSION N M PATH...`: Landlock's version, N paths to read, then M paths to write (the rest are ignored).
// The call with the number in the environment variable FAILING fails.
#include <dirent.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

namespace {
struct Name {
    const char* name;
    long number;
};
constexpr Name names[] = {
#include "names.inc"
    {"", -1}};

// confine_call's return point: the address that follows its system call instruction.
uint64_t own_place() {
    auto* code = reinterpret_cast<const unsigned char*>(&confine_call);
#if defined(__x86_64__)
    while (code[0] != 0x0f || code[1] != 0x05) ++code;
    return reinterpret_cast<uint64_t>(code + 2);
#else
    while (*reinterpret_cast<const uint32_t*>(code) != 0xd4000001) code += 4;
    return reinterpret_cast<uint64_t>(code + 4);
#endif
}

int landlock_version = 0, failing = -1, calls = 0;

bool fails() { return calls++ == failing; }

int open_files() {
    int count = 0;
    DIR* folder = opendir("/proc/self/fd");
    while (readdir(folder)) ++count;
    closedir(folder);
    return count;
}
}  // namespace

extern "C" int __wrap_prctl(int option, ...) {
    va_list rest;
    va_start(rest, option);
    unsigned long second = va_arg(rest, unsigned long);
    const void* third = va_arg(rest, const void*);
    unsigned long fourth = va_arg(rest, unsigned long), fifth = va_arg(rest, unsigned long);
    va_end(rest);
    printf("prctl %d %lu", option, second);
    if (option == PR_SET_NO_NEW_PRIVS) printf(" %lu %lu %lu", reinterpret_cast<unsigned long>(third), fourth, fifth);
    printf("\n");
    if (option == PR_SET_SECCOMP) {
        auto* program = static_cast<const sock_fprog*>(third);
        for (int i = 0; i < program->len; ++i) {
            const sock_filter& line = program->filter[i];
            printf("bpf %u %u %u %u\n", line.code, line.jt, line.jf, line.k);
        }
    }
    return fails() ? -1 : 0;
}

extern "C" int __wrap_setrlimit(int resource, const rlimit* limits) {
    printf("limit %d %lu %lu\n", resource, limits->rlim_cur, limits->rlim_max);
    return 0;
}

extern "C" long __wrap_syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    uint64_t a[4];
    for (uint64_t& argument : a) argument = va_arg(rest, uint64_t);
    va_end(rest);
    if (number == 444 && a[0] == 0) return a[1] == 0 && static_cast<uint32_t>(a[2]) == 1 ? landlock_version : -1;
    if (number == 444) {
        uint64_t wanted[3] = {};
        memcpy(wanted, reinterpret_cast<void*>(a[0]), a[1]);
        printf("ruleset %lu %lx %lx %lx flags %u\n", a[1], wanted[0], wanted[1], wanted[2],
               static_cast<uint32_t>(a[2]));
        return fails() ? -1 : 77;
    }
    if (number == 445) {
        auto* rule = reinterpret_cast<const char*>(a[2]);
        uint64_t rights;
        int32_t place;
        memcpy(&rights, rule, 8);
        memcpy(&place, rule + 8, 4);
        char link[64], path[256] = {};
        snprintf(link, sizeof link, "/proc/self/fd/%d", place);
        if (readlink(link, path, sizeof path - 1) < 0) strcpy(path, "nothing");
        printf("rule %d %d %lx flags %u %s\n", static_cast<int>(a[0]), static_cast<int>(a[1]), rights,
               static_cast<uint32_t>(a[3]), path);
        return fails() ? -1 : 0;
    }
    if (number == SYS_capset) {
        auto* self = reinterpret_cast<const uint32_t*>(a[0]);
        printf("capset %x %u", self[0], self[1]);
        for (int i = 0; i < 6; ++i) printf(" %x", reinterpret_cast<const uint32_t*>(a[1])[i]);
        printf("\n");
        return 0;
    }
    printf("call %ld %d\n", number, static_cast<int>(a[0]));
    return fails() ? -1 : 0;
}

int main(int count, char** words) {
    if (getenv("FAILING")) failing = atoi(getenv("FAILING"));
    const char* what = words[1];
    bool done = true;
    if (strcmp(what, "limits") == 0) {
        size_t n[5];
        for (int i = 0; i < 5; ++i) n[i] = strtoull(words[2 + i], nullptr, 10);
        confine::limit({n[0], n[1], n[2], n[3], n[4]});
    } else if (strcmp(what, "files") == 0) {
        landlock_version = atoi(words[2]);
        int reads = atoi(words[3]), writes = atoi(words[4]), before = open_files();
        done = confine::only_files(words + 5, reads, words + 5 + reads, writes);
        printf("left open %d\n", open_files() - before);
    } else {
        printf("is %d %lu %u\n", getpid(), own_place(),
#if defined(__x86_64__)
               AUDIT_ARCH_X86_64
#else
               AUDIT_ARCH_AARCH64
#endif
        );
        done = strcmp(what, "gpu") == 0         ? confine::only_computing_on_gpu()
               : strcmp(what, "computing") == 0 ? confine::only_computing()
                                                : confine::no_reaching_out();
    }
    printf("gives %d\n", done);
    for (const Name& each : names)
        if (each.number >= 0) printf("name %s %ld\n", each.name, each.number);
}
