// The macros of the unit tests: CASE, CHECK, CHECK_EQUAL and CHECK_ABORTS.
//
// No pip package has doctest or Catch2 for every Python that the course supports, and these macros are sufficient.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

namespace unit {

struct Case {
    const char* name;
    void (*run)();
    Case* next;
    Case(const char* name, void (*run)()) : name(name), run(run), next(first) { first = this; }
    static inline Case* first = nullptr;
};

inline bool failed = false;

inline void fail(const char* file, int line, const char* what) {
    printf("%s:%d: %s\n", file, line, what);
    failed = true;
}

inline void check_equal(const char* file, int line, const char* what, long long actual, long long expected) {
    if (actual == expected) return;
    fail(file, line, what);
    printf("    is %lld, not %lld\n", actual, expected);
}

// Runs the function in a child process and returns its wait status; 0 means success.
template <typename F>
int status_of(F call) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        call();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}
// Returns whether the function aborts, as a failed assertion does.
template <typename F>
bool aborts(F call) {
    int status = status_of(call);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// Returns whether repeated calls use more and more memory, at least 64 KiB each.
template <typename F>
bool leaks(F once) {
    once();
    return status_of([&] {
               unsigned long pages = 0;
               FILE* sizes = fopen("/proc/self/statm", "r");
               if (sizes && fscanf(sizes, "%lu", &pages) == 1) fclose(sizes);
               rlimit limit = {};
               limit.rlim_cur = limit.rlim_max = pages * static_cast<size_t>(getpagesize()) + (size_t(8) << 20);
               if (setrlimit(RLIMIT_AS, &limit) != 0) abort();
               for (unsigned turn = 0; turn < 150; ++turn) once();
           }) != 0;
}

}  // namespace unit

#define CASE(NAME)                                    \
    static void NAME();                               \
    static const unit::Case case_##NAME(#NAME, NAME); \
    static void NAME()
#define CHECK(...) ((__VA_ARGS__) ? (void)0 : unit::fail(__FILE__, __LINE__, #__VA_ARGS__))
#define CHECK_EQUAL(ACTUAL, EXPECTED) \
    unit::check_equal(__FILE__, __LINE__, #ACTUAL, static_cast<long long>(ACTUAL), static_cast<long long>(EXPECTED))
#define CHECK_ABORTS(...) CHECK(unit::aborts([&] { (void)(__VA_ARGS__); }))
