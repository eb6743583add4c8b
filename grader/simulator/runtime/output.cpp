// printf and assert in device code.
//
// CUDA collects kernel output in a buffer of 1 MB and prints it at the next synchronization. Here the buffer waits for
// sim_take_output. A program with a main never calls that, so its output goes to standard output.
#include "output.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block_order.h"
#include "limits.h"
#include "submission_sandbox/sandbox.h"
#include "scheduler.h"
#include "sim/error_codes.h"

namespace sim {

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
char* buffer = nullptr;  // text printed so far
size_t used = 0, capacity = 0;
bool lost = false;
bool kept = false;      // sim_take_output is in use
char* taken = nullptr;  // text that sim_take_output returned

constexpr char lost_note[] = "\n[device printf: the buffer of 1 MB was full, later output is lost]\n";

void append(const char* text, size_t bytes) {
    if (used + bytes > limits::printf_buffer) {
        lost = true;
        return;
    }
    if (used + bytes + sizeof lost_note > capacity) {
        size_t wanted = (used + bytes + sizeof lost_note) * 2;
        char* moved = static_cast<char*>(realloc(buffer, wanted));
        if (!moved) {
            lost = true;
            return;
        }
        buffer = moved;
        capacity = wanted;
    }
    memcpy(buffer + used, text, bytes);
    used += bytes;
}

void print(const char* format, va_list arguments, int* length) {
    in_block_order("its threads print");
    char text[1024];
    va_list again;
    va_copy(again, arguments);
    *length = vsnprintf(text, sizeof text, format, arguments);
    pthread_mutex_lock(&lock);
    if (*length >= static_cast<int>(sizeof text)) {
        size_t bytes = static_cast<size_t>(*length) + 1;
        char* longer = static_cast<char*>(malloc(bytes));
        if (longer) {
            vsnprintf(longer, bytes, format, again);
            append(longer, bytes - 1);
            free(longer);
        }
    } else if (*length > 0) {
        append(text, static_cast<size_t>(*length));
    }
    pthread_mutex_unlock(&lock);
    va_end(again);
}

void print_line(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length;
    print(format, arguments, &length);
    va_end(arguments);
}

// Returns whether a format has a conversion %n.
bool writes_count(const char* format) {
    while ((format = strchr(format, '%')) != nullptr) {
        format += 1 + strspn(format + 1, "0123456789$ #+-'I.*hlLqjzt");
        if (*format == 'n') return true;
        if (*format) ++format;
    }
    return false;
}

// Prints the rest when a program with a main ends.
struct AtExit {
    ~AtExit() { show_output(); }
} at_exit;

}  // namespace

void refuse_writing_counts(const char* format, const void* code) {
    if (sandbox::confined && writes_count(format)) sandbox::refuse(format, code);
}

const char* take_output() {
    pthread_mutex_lock(&lock);
    if (lost && buffer) {
        memcpy(buffer + used, lost_note, sizeof lost_note);
        used += sizeof lost_note - 1;
    }
    if (buffer) buffer[used] = '\0';
    free(taken);
    taken = buffer;
    buffer = nullptr;
    used = capacity = 0;
    lost = false;
    pthread_mutex_unlock(&lock);
    return taken ? taken : "";
}

void keep_output() { kept = true; }

void show_output() {
    if (kept || used == 0) return;
    fputs(take_output(), stdout);
    fflush(stdout);
}

}  // namespace sim

extern "C" {

// printf and assert in a kernel file: see sim/c_library.h.
__attribute__((visibility("default"))) int sim_printf(const char* format, ...) {
    sim::refuse_writing_counts(format, __builtin_return_address(0));
    va_list arguments;
    va_start(arguments, format);
    int length;
    if (sim::current_thread) {
        sim::print(format, arguments, &length);
    } else {
        length = vprintf(format, arguments);
    }
    va_end(arguments);
    return length;
}

__attribute__((visibility("default"), noreturn)) void sim___assert_fail(const char* expression, const char* file,
                                                                        unsigned line, const char* function) {
    using namespace sim;
    Thread* self = current_thread;
    if (!self) {
        fflush(stdout);
        fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
        abort();
    }
    const uint3& b = self->block->index;
    const uint3& t = self->index;
    print_line("%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line, function, b.x,
               b.y, b.z, t.x, t.y, t.z, expression);
    raise_fault(events::FaultKind::assertion, cudaErrorAssert, nullptr, __builtin_return_address(0), expression);
}

}  // extern "C"
