// printf and assert in device code.
//
// CUDA collects kernel output in a buffer of 1 MB and prints it at the next synchronization. Here the buffer waits for
// sim_take_output. A program with a main never calls that, so its output goes to standard output.
#include "output.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block_order.h"
#include "growable.h"
#include "limits.h"
#include "registry.h"
#include "submission_sandbox/sandbox.h"
#include "scheduler.h"
#include "sim/error_codes.h"

namespace sim {

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
Growable<char> buffer;  // text printed so far
Growable<char> taken;   // text that sim_take_output returned
bool lost = false;
bool kept = false;  // the caller takes the text with sim_take_output, so it is not printed

constexpr char lost_note[] = "\n[device printf: the buffer of 1 MB was full, later output is lost]\n";

void print(const char* format, va_list arguments, int* length) {
    in_block_order("its threads print");
    // The watchdog ends a launch where a thread runs its own code. A thread that prints all the time is hardly ever there.
    if (current_worker->grid->stop.is_raised()) leave_grid(*current_worker);
    char* text = nullptr;
    *length = vasprintf(&text, format, arguments);
    if (*length < 0) return;
    auto bytes = static_cast<size_t>(*length);
    {
        MutexLock guard(lock);
        if (buffer.size() + bytes <= limits::printf_buffer)
            buffer.append(text, bytes);
        else
            lost = true;
    }
    free(text);
}

void print_line(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length;
    print(format, arguments, &length);
    va_end(arguments);
}

void report_string(const char* text, size_t most, const void* code) {
    if (!text) return;
    size_t length = strnlen(text, most);
    events::late_access(text, length < most ? length + 1 : most, false, code);
}

// A conversion specification of printf: the text from a % up to its letter.
struct Conversion {
    const char* end = nullptr;
    char letter = 0;
    unsigned stars = 0;  // number of `*`: arguments that are a width or a precision
    bool precise = false, precision_is_argument = false;
    size_t precision = 0;
    unsigned longs = 0;  // number of `l` modifiers; 2 for the modifiers j, z and t, whose types also have 64 bits
    bool long_double = false, numbered = false;

    explicit Conversion(const char* text) {
        while (*text && strchr("-+ #0'I", *text)) ++text;
        for (; *text; ++text) {
            if (*text == '*') {
                ++stars;
                precision_is_argument = precise;
            } else if (*text == '.') {
                precise = true;
            } else if (*text >= '0' && *text <= '9') {
                if (precise) precision = 10 * precision + static_cast<size_t>(*text - '0');
            } else if (*text == '$') {
                numbered = true;
            } else if (strchr("ljztq", *text)) {
                ++longs;
            } else if (*text == 'L') {
                long_double = true;
            } else if (*text != 'h') {
                break;
            }
        }
        letter = *text;
        end = *text ? text + 1 : text;
    }
};

// Prints the rest when a program with a main ends.
struct AtExit {
    ~AtExit() { show_output(); }
} at_exit;

}  // namespace

void check_format(const char* format, va_list arguments, const void* code) {
    report_string(format, SIZE_MAX, code);
    va_list rest;
    va_copy(rest, arguments);
    for (const char* text = format; (text = strchr(text, '%')) != nullptr;) {
        Conversion found(text + 1);
        text = found.end;
        // Numbered arguments (%1$d) are not supported, as in CUDA's printf.
        if (sandbox::confined && (found.letter == 'n' || found.numbered)) sandbox::refuse(format, code);
        int last_star = 0;
        for (unsigned i = 0; i < found.stars; ++i) last_star = va_arg(rest, int);
        if (found.precision_is_argument) {
            found.precise = last_star >= 0;
            found.precision = static_cast<size_t>(last_star);
        }
        if (!found.letter || found.numbered) break;
        if (found.letter == 's') {
            report_string(va_arg(rest, const char*), found.precise ? found.precision : SIZE_MAX, code);
        } else if (strchr("aAeEfFgG", found.letter)) {
            if (found.long_double)
                va_arg(rest, long double);
            else
                va_arg(rest, double);
        } else if (strchr("dioxXuc", found.letter) && !found.longs) {
            va_arg(rest, int);
        } else if (found.letter != '%' && found.letter != 'm') {
            va_arg(rest, long);
        }
    }
    va_end(rest);
}

const char* take_output() {
    MutexLock guard(lock);
    taken.clear();
    taken.append(buffer.begin(), buffer.size());
    if (lost) taken.append(lost_note, strlen(lost_note));
    taken.push('\0');
    buffer.clear();
    lost = false;
    return taken.begin();
}

void keep_output() { kept = true; }

void show_output() {
    if (kept || (buffer.empty() && !lost)) return;
    fputs(take_output(), stdout);
    fflush(stdout);
}

}  // namespace sim

extern "C" {

// printf and assert in a kernel file: see sim/c_library.h.
__attribute__((visibility("default"))) int sim_printf(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sim::check_format(format, arguments, __builtin_return_address(0));
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
