// Wrappers of C and C++ library functions. A kernel library is linked with --wrap for them (grader/simulator/hooks.py):
// functions that allocate, and functions that read or write through a pointer.
#include <cxxabi.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <new>

#include "device_heap.h"
#include "events.h"
#include "output.h"
#include "submission_sandbox/sandbox.h"

#define WRAP(RESULT, NAME) extern "C" __attribute__((visibility("default"))) RESULT __wrap_##NAME

namespace {

using sim::sandbox::confined;

void* allocate_or_throw(size_t bytes, size_t alignment) {
    void* given = sim::sandbox::allocate(bytes, alignment);
    if (!given) throw std::bad_alloc();
    return given;
}

// A confined submission is allowed to print only to stdout and stderr. Any other FILE* could be forged, so it is
// refused.
FILE* printed(FILE* file, const void* code) {
    if (confined && file != stdout && file != stderr) sim::sandbox::refuse(file, code);
    return file;
}

// --- reports of reads by library functions ---

const void* read(const void* data, size_t bytes, const void* code) {
    sim::events::late_access(data, bytes, false, code);
    return data;
}

const char* read_string(const char* text, const void* code) {
    read(text, strlen(text) + 1, code);
    return text;
}

template <typename T>
__attribute__((always_inline)) inline void written(T* place, const void* code) {
    sim::sandbox::result(place);
    sim::events::late_access(place, sizeof *place, true, code);
}

size_t bytes_between(const void* first, const void* last) {
    return static_cast<size_t>(static_cast<const char*>(last) - static_cast<const char*>(first));
}

int memcmp_reported(const void* a, const void* b, size_t bytes, const void* code) {
    auto one = static_cast<const char*>(a), other = static_cast<const char*>(b);
    size_t same = 0;
    while (same < bytes && one[same] == other[same]) ++same;
    size_t both = same < bytes ? same + 1 : bytes;
    return memcmp(read(a, both, code), read(b, both, code), both);
}

int strncmp_reported(const char* a, const char* b, size_t most, const void* code) {
    size_t same = 0;
    while (same < most && a[same] && a[same] == b[same]) ++same;
    size_t both = same < most ? same + 1 : most;
    read(a, both, code);
    read(b, both, code);
    return strncmp(a, b, both);
}

}  // namespace

WRAP(void*, _Znwm)(size_t bytes) { return confined ? allocate_or_throw(bytes, 16) : ::operator new(bytes); }
WRAP(void*, _Znam)(size_t bytes) { return confined ? allocate_or_throw(bytes, 16) : ::operator new[](bytes); }
WRAP(void*, _ZnwmSt11align_val_t)(size_t bytes, std::align_val_t alignment) {
    return confined ? allocate_or_throw(bytes, static_cast<size_t>(alignment)) : ::operator new(bytes, alignment);
}
WRAP(void*, _ZnamSt11align_val_t)(size_t bytes, std::align_val_t alignment) {
    return confined ? allocate_or_throw(bytes, static_cast<size_t>(alignment)) : ::operator new[](bytes, alignment);
}
WRAP(void*, _ZnwmRKSt9nothrow_t)(size_t bytes, const std::nothrow_t& nothrow) {
    return confined ? sim::sandbox::allocate(bytes) : ::operator new(bytes, nothrow);
}
WRAP(void*, _ZnamRKSt9nothrow_t)(size_t bytes, const std::nothrow_t& nothrow) {
    return confined ? sim::sandbox::allocate(bytes) : ::operator new[](bytes, nothrow);
}

// delete in a kernel library. A confined submission may not free memory from outside the sandbox's pool.
#define DELETE(NAME, PARAMETERS, CALL)                                          \
    WRAP(void, NAME) PARAMETERS {                                               \
        if (sim::freed_by_kernel(pointer, __builtin_return_address(0))) return; \
        if (!sim::sandbox::release(pointer) && !confined) CALL;                 \
    }
DELETE(_ZdlPv, (void* pointer), ::operator delete(pointer))
DELETE(_ZdaPv, (void* pointer), ::operator delete[](pointer))
DELETE(_ZdlPvm, (void* pointer, size_t), ::operator delete(pointer))
DELETE(_ZdaPvm, (void* pointer, size_t), ::operator delete[](pointer))
DELETE(_ZdlPvSt11align_val_t, (void* pointer, std::align_val_t a), ::operator delete(pointer, a))
DELETE(_ZdaPvSt11align_val_t, (void* pointer, std::align_val_t a), ::operator delete[](pointer, a))
DELETE(_ZdlPvmSt11align_val_t, (void* pointer, size_t, std::align_val_t a), ::operator delete(pointer, a))
DELETE(_ZdaPvmSt11align_val_t, (void* pointer, size_t, std::align_val_t a), ::operator delete[](pointer, a))

// For calls that sim/c_library.h has not renamed.
extern "C" void* sim_malloc(size_t bytes);
extern "C" void sim_free(void* pointer);
WRAP(void*, malloc)(size_t bytes) { return sim_malloc(bytes); }
WRAP(void, free)(void* pointer) { sim_free(pointer); }
WRAP(void*, calloc)(size_t count, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
    void* given = sim_malloc(all);
    return given ? memset(given, 0, all) : nullptr;
}

// Memory for an exception comes from the C++ library, but code of the submission writes the exception object. So the
// sandbox stores the range of the object and permits writes to it.
WRAP(void*, __cxa_allocate_exception)(size_t bytes) noexcept {
    void* given = abi::__cxa_allocate_exception(bytes);
    sim::sandbox::exception = {reinterpret_cast<uintptr_t>(given), bytes};
    return given;
}

WRAP(void, sincos)(double a, double* sine, double* cosine) {
    sim::sandbox::result(sine);
    sim::sandbox::result(cosine);
    sincos(a, sine, cosine);
}
WRAP(void, sincosf)(float a, float* sine, float* cosine) {
    sim::sandbox::result(sine);
    sim::sandbox::result(cosine);
    sincosf(a, sine, cosine);
}

WRAP(time_t, time)(time_t* place) {
    if (place) sim::sandbox::result(place);
    return time(place);
}

#define CODE __builtin_return_address(0)

WRAP(int, fprintf)(FILE* file, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sim::check_format(format, arguments, CODE);
    int length = vfprintf(printed(file, CODE), format, arguments);
    va_end(arguments);
    return length;
}
WRAP(int, snprintf)(char* text, size_t bytes, const char* format, ...) {
    sim::sandbox::copies_to(text, bytes, CODE);
    va_list arguments;
    va_start(arguments, format);
    sim::check_format(format, arguments, CODE);
    int length = vsnprintf(text, bytes, format, arguments);
    size_t written = static_cast<size_t>(length) + 1;
    if (length >= 0) sim::events::late_access(text, written < bytes ? written : bytes, true, CODE);
    va_end(arguments);
    return length;
}
WRAP(int, fputs)(const char* text, FILE* file) { return fputs(read_string(text, CODE), printed(file, CODE)); }
WRAP(int, puts)(const char* text) { return puts(read_string(text, CODE)); }
WRAP(void, perror)(const char* text) { perror(text ? read_string(text, CODE) : text); }
WRAP(int, fputc)(int letter, FILE* file) { return fputc(letter, printed(file, CODE)); }
WRAP(int, putc)(int letter, FILE* file) { return fputc(letter, printed(file, CODE)); }
WRAP(size_t, fwrite)(const void* text, size_t bytes, size_t count, FILE* file) {
    size_t total;
    if (__builtin_mul_overflow(bytes, count, &total)) return 0;
    return fwrite(read(text, total, CODE), bytes, count, printed(file, CODE));
}
WRAP(int, fflush)(FILE* file) { return fflush(file ? printed(file, CODE) : nullptr); }

WRAP(int, atoi)(const char* text) { return atoi(read_string(text, CODE)); }
WRAP(long, atol)(const char* text) { return atol(read_string(text, CODE)); }
WRAP(long long, atoll)(const char* text) { return atoll(read_string(text, CODE)); }
WRAP(double, atof)(const char* text) { return atof(read_string(text, CODE)); }
// glibc's headers implement atoi, atol and similar functions by calls of these functions. In newer versions of glibc,
// two of them have another name.
#define STRTO(NAME, RESULT, OF, PARAMETERS, ARGUMENTS)            \
    WRAP(RESULT, NAME)(const char* text, char** end PARAMETERS) { \
        if (end) written(end, CODE);                              \
        return OF(read_string(text, CODE), end ARGUMENTS);        \
    }
#define PARAMETER , int base
#define ARGUMENT , base
#define NONE
STRTO(strtol, long, strtol, PARAMETER, ARGUMENT)
STRTO(strtoll, long long, strtoll, PARAMETER, ARGUMENT)
STRTO(__isoc23_strtol, long, strtol, PARAMETER, ARGUMENT)
STRTO(__isoc23_strtoll, long long, strtoll, PARAMETER, ARGUMENT)
STRTO(strtod, double, strtod, NONE, NONE)
WRAP(double, nan)(const char* text) { return nan(read_string(text, CODE)); }
WRAP(float, nanf)(const char* text) { return nanf(read_string(text, CODE)); }
WRAP(long double, nanl)(const char* text) { return nanl(read_string(text, CODE)); }

WRAP(size_t, strlen)(const char* text) { return strlen(read_string(text, CODE)); }
WRAP(size_t, strnlen)(const char* text, size_t most) {
    size_t length = strnlen(text, most);
    read(text, length < most ? length + 1 : most, CODE);
    return length;
}
WRAP(int, strcmp)(const char* a, const char* b) { return strncmp_reported(a, b, SIZE_MAX, CODE); }
WRAP(int, strncmp)(const char* a, const char* b, size_t most) { return strncmp_reported(a, b, most, CODE); }
WRAP(int, memcmp)(const void* a, const void* b, size_t bytes) { return memcmp_reported(a, b, bytes, CODE); }
WRAP(int, bcmp)(const void* a, const void* b, size_t bytes) { return memcmp_reported(a, b, bytes, CODE); }
WRAP(const void*, memchr)(const void* data, int byte, size_t bytes) {
    const void* found = memchr(data, byte, bytes);
    read(data, found ? bytes_between(data, found) + 1 : bytes, CODE);
    return found;
}
WRAP(const void*, memrchr)(const void* data, int byte, size_t bytes) {
    const void* found = memrchr(data, byte, bytes);
    const void* first = found ? found : data;
    read(first, bytes - bytes_between(data, first), CODE);
    return found;
}
WRAP(const char*, strchr)(const char* text, int letter) {
    const char* found = strchr(text, letter);
    read(text, found ? bytes_between(text, found) + 1 : strlen(text) + 1, CODE);
    return found;
}
WRAP(const char*, strrchr)(const char* text, int letter) { return strrchr(read_string(text, CODE), letter); }
// These functions may stop before the end of a string, but the whole string is reported as read.
WRAP(size_t, strspn)(const char* text, const char* set) {
    return strspn(read_string(text, CODE), read_string(set, CODE));
}
WRAP(size_t, strcspn)(const char* text, const char* set) {
    return strcspn(read_string(text, CODE), read_string(set, CODE));
}
WRAP(const char*, strpbrk)(const char* text, const char* set) {
    return strpbrk(read_string(text, CODE), read_string(set, CODE));
}
WRAP(const char*, strstr)(const char* text, const char* part) {
    return strstr(read_string(text, CODE), read_string(part, CODE));
}
