// The end of a whole program: however it ends, its findings and counters are written to a file.
//
// `grader run` names the file in GRADER_PROGRAM_REPORT and reads it. Started directly, a program writes a temporary
// file and runs the reporter, a command that was linked into it. The settings are then environment variables, such as
// GRADER_TIMEOUT.
//
// The file begins with lines that say how the program ended: "signal NUMBER", "places OFFSET..." in the program,
// "kernel NAME", "refused WHAT" for what the simulator does not support. The report follows.
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "arena.h"
#include "faults.h"
#include "output.h"
#include "sampling.h"
#include "settings.h"

namespace sim {

namespace {

constexpr int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int requests[] = {SIGINT, SIGTERM, SIGHUP};
constexpr size_t handler_stack_bytes = 256 << 10;
constexpr int refused_status = 2;                // exit status for what the simulator does not support
constexpr unsigned longest_report_seconds = 10;  // writing may block on a lock that the interrupted code holds

pid_t program = 0;
char report_path[4096];
const char* const* reporter = nullptr;
uintptr_t program_base = 0;
volatile sig_atomic_t written = 0;
volatile sig_atomic_t timed_out = 0;
double timeout_seconds = 0;  // of GRADER_TIMEOUT
timespec started;
bool by_grader_run = false;
volatile sig_atomic_t noted = 0;  // the program was told how to save time
int ending_signal = 0;            // the signal that ends the program
int waiting_signal = 0;           // a signal that arrived while a launch ran; 0: none
Places waiting_places;

constexpr char with_options[] =
    "check only 8 blocks of each launch by --check-blocks 8, only the first 3 launches of each kernel by "
    "--check-launches 3, or nothing by --no-checks";
constexpr char with_variables[] =
    "check only 8 blocks of each launch by GRADER_CHECK_BLOCKS=8, or only the first 3 launches of each kernel by "
    "GRADER_CHECK_LAUNCHES=3";

void put(int file, const char* text) {
    size_t left = strlen(text);
    while (left) {
        ssize_t done = write(file, text, left);
        if (done <= 0) return;
        text += done;
        left -= static_cast<size_t>(done);
    }
}

void show(const char* path) {
    pid_t child = fork();
    if (child == 0) {
        const char* argv[8];
        int count = 0;
        while (reporter[count] && count < 5) {
            argv[count] = reporter[count];
            ++count;
        }
        char self[4096];
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        self[length > 0 ? length : 0] = '\0';
        argv[count++] = self;
        argv[count++] = path;
        argv[count] = nullptr;
        unsetenv("LD_PRELOAD");
        execv(argv[0], const_cast<char* const*>(argv));
        _exit(127);
    }
    int status;
    if (child > 0) waitpid(child, &status, 0);
}

void leave_report(int signal, const Places& places, const char* kernel, const char* refused = "", int status = 0) {
    if (written || getpid() != program) return;
    written = 1;
    bool temporary = !report_path[0];
    char path[] = "/tmp/grader_report_XXXXXX";
    int file = temporary ? mkstemp(path) : open(report_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return;
    char line[500];
    snprintf(line, sizeof line, "signal %d\nstatus %d\ntimeout %g\nplaces", signal, status & 255,
             timed_out ? timeout_seconds : 0.0);
    put(file, line);
    for (size_t i = 0; i < Places::most && places.address[i]; ++i) {
        snprintf(line, sizeof line, " %lld",
                 static_cast<long long>(reinterpret_cast<uintptr_t>(places.address[i]) - program_base));
        put(file, line);
    }
    snprintf(line, sizeof line, "\nkernel %s\nrefused %s\n", kernel, refused);
    put(file, line);
    put(file, sim_report());
    close(file);
    if (!temporary) return;
    if (reporter) show(path);
    unlink(path);
}

void unblock(int signal) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
}

[[noreturn]] void die_of(int signal) {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, nullptr);
    unblock(signal);
    raise(signal);
    _exit(128 + signal);
}

void on_late_report(int) { die_of(ending_signal); }

// Ends the process without a report if finding the place or writing the report blocks: glibc aborts with its lock held
// when it finds the heap corrupted, and both need memory from the heap.
void limit_report(int signal) {
    ending_signal = signal;
    struct sigaction late = {};
    late.sa_handler = on_late_report;
    sigaction(SIGALRM, &late, nullptr);
    unblock(SIGALRM);  // it is blocked in on_timeout()
    alarm(longest_report_seconds);
}

[[noreturn]] void end_by(int signal, const Places& places, const char* kernel) {
    limit_report(signal);
    leave_report(signal, places, kernel);
    die_of(signal);
}

void on_fault(int signal, siginfo_t*, void* context) {
    limit_report(signal);
    end_by(signal, places_in_program(context), "");
}

void on_request(int signal, siginfo_t*, void* context) {
    if (waiting_signal) return;
    const Places places = places_in_program(context);
    if (stop_running_grid()) {
        waiting_signal = signal;
        waiting_places = places;
        return;
    }
    end_by(signal, places, "");
}

void on_timeout(int, siginfo_t* info, void* context) {
    timed_out = 1;
    on_request(SIGTERM, info, context);
}

#if defined(__GLIBC__)
void at_exit(int status, void*) {
#else
void at_exit() {
    int status = 0;
#endif
    show_output();
    leave_report(0, {}, "", "", status);
}

[[noreturn]] void bad_variable(const char* name, const char* value, const char* needed) {
    char text[300];
    snprintf(text, sizeof text, "error: %s=%.100s: set it to %s\n", name, value, needed);
    put(2, text);
    _exit(refused_status);
}

struct Variable {
    const char* name;
    const char* setting;
    const char* needed;
    double least;
};
constexpr Variable variables[] = {
    {"GRADER_WORKERS", "workers", "a number of cores from 1 to 64", 1},
    {"GRADER_CHECK_BLOCKS", "check_blocks", "a number of blocks, at least 1", 1},
    {"GRADER_CHECK_LAUNCHES", "check_launches", "a number of launches, at least 1", 1},
    {"GRADER_SEED", "check_seed", "a number from 0 to 4294967295", 0},
};

void set_from_variables() {
    for (const Variable& variable : variables) {
        const char* value = getenv(variable.name);
        if (!value) continue;
        bool good = configure(variable.setting, value) == 0 && strtod(value, nullptr) >= variable.least;
        if (!good) bad_variable(variable.name, value, variable.needed);
    }
    const char* timeout = getenv("GRADER_TIMEOUT");
    if (!timeout) return;
    char* end = nullptr;
    timeout_seconds = strtod(timeout, &end);
    if (end == timeout || *end || !(timeout_seconds >= 0.1 && timeout_seconds <= 1e6))
        bad_variable("GRADER_TIMEOUT", timeout, "a number of seconds, at least 0.1");
    configure("watchdog_seconds", timeout);
    struct sigaction action = {};
    action.sa_sigaction = on_timeout;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    struct itimerval timer = {};
    timer.it_value.tv_sec = static_cast<time_t>(timeout_seconds);
    timer.it_value.tv_usec =
        static_cast<suseconds_t>((timeout_seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
    setitimer(ITIMER_REAL, &timer, nullptr);
}

void set_from_environment() {
    const char* given = getenv("GRADER_PROGRAM_SETTINGS");  // example: "watchdog_seconds=60 workers=1"
    if (!given) {
        set_from_variables();
        return;
    }
    by_grader_run = true;
    char* settings_text = strdup(given);
    char* rest = nullptr;
    for (char* word = strtok_r(settings_text, " ", &rest); word; word = strtok_r(nullptr, " ", &rest)) {
        char* equals = strchr(word, '=');
        if (!equals) continue;
        *equals = '\0';
        configure(word, equals + 1);
    }
    free(settings_text);
}

}  // namespace

// Signal handlers call this function.
void program_notes_time() {
    if (!program || noted || !settings.checks || sampling::is_on() || settings.note_seconds <= 0) return;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        static_cast<double>(now.tv_sec - started.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - started.tv_nsec);
    if (seconds < settings.note_seconds) return;
    noted = 1;
    char text[400];
    snprintf(text, sizeof text,
             "note: the program has run for %g s with all checks. To save time, %s, or give it a smaller input.\n",
             settings.note_seconds, by_grader_run ? with_options : with_variables);
    put(2, text);
}

void program_launch_ended(const char* kernel) {
    program_notes_time();
    if (waiting_signal) end_by(waiting_signal, waiting_places, kernel);
}

bool is_program() { return program != 0; }

namespace {

void end_refused(const void* place, const char* kernel, const char* refused) {
    if (!program) return;
    show_output();
    fflush(nullptr);
    leave_report(0, {{place}}, kernel, refused);
    _exit(refused_status);
}

}  // namespace

void program_waits_for_host(const char* kernel, const void* place) {
    end_refused(place, kernel, "the kernel waits for the host while it runs");
}

void program_wants_too_much(const char* call, const void* place) {
    char refused[160];
    snprintf(refused, sizeof refused,
             "%s requests more than the %zu MiB that the simulator reserved for device and pinned memory", call,
             arena::reserved_bytes() >> 20);
    end_refused(place, "", refused);
}

}  // namespace sim

extern "C" void sim_program_starts(const char* const* reporter_, const void* base) {
    using namespace sim;
    if (program) return;
    program = getpid();
    reporter = reporter_;
    program_base = reinterpret_cast<uintptr_t>(base);
    if (const char* path = getenv("GRADER_PROGRAM_REPORT")) {
        strncpy(report_path, path, sizeof report_path - 1);
        unsetenv("GRADER_PROGRAM_REPORT");  // programs that this one starts must not inherit it
    }
    clock_gettime(CLOCK_MONOTONIC, &started);
    set_from_environment();
    keep_place_of_program(__builtin_return_address(0));
    stack_t stack = {};
    stack.ss_size = handler_stack_bytes;
    stack.ss_sp = mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : faults) sigaction(signal, &action, nullptr);
    action.sa_sigaction = on_request;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (int signal : requests) sigaction(signal, &action, nullptr);
#if defined(__GLIBC__)
    on_exit(at_exit, nullptr);
#else
    atexit(at_exit);
#endif
}
