// Calls submission_sandbox.cpp directly to test each access. The rest of the simulator is not linked.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "runtime/events.h"
#include "runtime/faults.h"
#include "runtime/fiber.h"
#include "runtime/last_error.h"
#include "submission_sandbox/sandbox.h"
#include "runtime/thread.h"
#include "submission.h"

extern "C" void sim_confine();
extern "C" int sim_call(int (*thunk)(void**), void** arguments);

using sim::sandbox::Range;

namespace {
Parts parts;
int wrong = 0;
char said[64];
bool said_write = false;
size_t said_bytes = 0;
int fault = 0, killed = 0;
jmp_buf from_kernel;
alignas(64) char arena[256];
char host_names[32];
char shared[64], other_shared[64];
Range callable;
sim::Block* owner = nullptr;
bool closed = false, closes = false;
uintptr_t faulting = 0;

#define CHECK(...) ((__VA_ARGS__) ? (void)0 : (printf("%d: %s\n", __LINE__, #__VA_ARGS__), (void)++wrong))
}  // namespace

namespace sim {
__thread Thread* current_thread = nullptr;
void kill_launch(int error) {
    killed = error;
    longjmp(from_kernel, 1);
}
void set_fault(int error) { fault = error; }
ArenaRange arena_range() { return {arena, sizeof arena}; }
namespace arena {
// The host may always access bytes 0-127 of the arena; bytes 128-255 may be closed to it.
bool is_closed(const void* address) {
    auto* byte = static_cast<const char*>(address);
    return closes && closed && ((byte >= ::arena + 128 && byte < ::arena + 256) || faulting);
}
void close_device_memory() { closed = true; }
void open_device_memory() { closed = false; }
}  // namespace arena
bool find_global(const void*, GlobalVariable*) { return false; }
bool was_write(const void*) { return true; }
Places places_in_program(const void*, uintptr_t) { return {{parts.function}}; }
void keep_place_of_program(void*) {}
uintptr_t host_names_base = reinterpret_cast<uintptr_t>(host_names);
size_t host_names_bytes = sizeof host_names;
Block* shared_owner(const Block&, const void* address) {
    auto at = static_cast<const char*>(address);
    if (at >= shared && at < shared + sizeof shared) return owner;
    if (at >= other_shared && at < other_shared + sizeof other_shared) return owner + 1;
    return nullptr;
}
namespace events {
void not_its_own(const char* kind, const void*, size_t bytes, bool write, const void*) {
    said_bytes = bytes;
    snprintf(said, sizeof said, "%s", kind);
    said_write = write;
}
}  // namespace events
namespace sandbox {
void set_callable(uintptr_t base, size_t bytes) { callable = {base, bytes}; }
}  // namespace sandbox
}  // namespace sim

using namespace sim;

namespace {
const void* code() { return static_cast<const char*>(parts.function) + 1; }

struct Access {
    const void* data;
    size_t bytes;
    bool write;
};

int ask(void** words) {
    auto* access = static_cast<Access*>(words[0]);
    sandbox::check(access->data, access->bytes, access->write, code(), SIM_FRAME);
    return 5;
}

// Makes an access in a launcher. Returns the kind of the finding, or an empty text if the access is allowed.
const char* launcher(const void* data, size_t bytes, bool write) {
    Access access = {data, bytes, write};
    void* words[] = {&access};
    said[0] = 0;
    fault = 0;
    int result = sim_call(ask, words);
    if (result == 5) {
        CHECK(!fault && !said[0]);
        return "";
    }
    CHECK(result == 700 && fault == 700 && said_write == write);
    return said;
}
bool may_read(const void* data, size_t bytes) { return !*launcher(data, bytes, false); }
bool may_write(const void* data, size_t bytes) { return !*launcher(data, bytes, true); }
bool refused(const void* data, size_t bytes, bool write, const char* kind = "not_its_memory") {
    return strcmp(launcher(data, bytes, write), kind) == 0;
}

const void* plus(const void* data, long bytes) { return static_cast<const char*>(data) + bytes; }

int ask_in_frames(void** words) {
    auto inner = reinterpret_cast<void (*)(void*)>(words[0]);
    auto deeper = reinterpret_cast<void (*)(void*, void (*)(void*))>(words[1]);
    void* place = nullptr;
    void* both[2] = {place, words[2]};
    parts.with_local(inner, deeper, both);
    return 5;
}

Access wanted;  // the access to try; `data` is its offset from a local variable
bool only_stack = false, from_the_frame = false;
__attribute__((noinline)) void look_at_local(void* words) {
    const void* local = *static_cast<void**>(words);
    const void* from = from_the_frame ? static_cast<const void*>(SIM_FRAME) : local;
    const void* data = plus(from, reinterpret_cast<long>(wanted.data));
    if (only_stack)
        sandbox::check_stack(data, wanted.bytes, code(), SIM_FRAME);
    else
        sandbox::check(data, wanted.bytes, wanted.write, code(), SIM_FRAME);
}
__attribute__((noinline)) void one_frame_deeper(void* words, void (*inner)(void*)) {
    volatile long mine[8] = {};
    inner(words);
    mine[0] = 1;
}
const char* local(long offset, size_t bytes, bool write, bool deeper = false) {
    wanted = {reinterpret_cast<const void*>(offset), bytes, write};
    void* words[] = {reinterpret_cast<void*>(&look_at_local),
                     deeper ? reinterpret_cast<void*>(&one_frame_deeper) : nullptr};
    said[0] = 0;
    return sim_call(ask_in_frames, words) == 5 ? "" : said;
}

// --- checks of function calls and of registered variables ---
int ask_function(void** words) { return sandbox::check_function(words[0], code()), 5; }
int ask_callable(void** words) { return sandbox::check_callable(words[0], code()), 5; }
int ask_variable(void** words) {
    return sandbox::check_variable(words[0], reinterpret_cast<size_t>(words[1]), code()), 5;
}
// Raises SIGSEGV, as an access of the C library to closed memory would.
int ask_signal(void**) {
    faulting = 1;
    raise(SIGSEGV);
    return 5;
}
int ask_refuse(void** words) { sandbox::refuse(words[0], code()); }
bool passes(int (*what)(void**), const void* first, size_t second = 0) {
    void* words[] = {const_cast<void*>(first), reinterpret_cast<void*>(second)};
    said[0] = 0;
    return sim_call(what, words) == 5;
}

// Runs a call in a child process. Returns how that process ends.
template <typename F>
int ends(F what) {
    fflush(stdout);
    int both[2];
    if (pipe(both)) abort();
    pid_t child = fork();
    if (child == 0) {
        dup2(both[1], 1);
        what();
        _exit(0);
    }
    close(both[1]);
    char text[200] = {};
    ssize_t length = read(both[0], text, sizeof text - 1);
    close(both[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    CHECK(length > 0 && strncmp(text, "stopped: ", 9) == 0 && WTERMSIG(status) == SIGSEGV);
    return -1;
}

long data_of_ours = 1;
const long constant_of_ours = 2;
thread_local long thread_local_of_ours = 3;

__attribute__((noinline)) void places() {
    CHECK(may_read(parts.variable, 32) && may_write(parts.variable, 32) && may_write(plus(parts.variable, 31), 1));
    CHECK(callable.contains(reinterpret_cast<uintptr_t>(parts.function), 1));
    CHECK(may_read(parts.constant, 16) && refused(parts.constant, 8, true));
    CHECK(may_read(parts.table, 8) && refused(parts.table, 8, true));
    CHECK(may_read(parts.function, 4) && refused(parts.function, 4, true));
    CHECK(refused(plus(reinterpret_cast<void*>(callable.base), callable.bytes - 4), 8, true));
    CHECK(refused(plus(parts.of_the_thread, 16), 8, true) && refused(plus(parts.of_the_thread, 8), 16, true));
    CHECK(may_write(parts.of_the_thread, 16) && refused(&thread_local_of_ours, 8, true) &&
          refused(&thread_local_of_ours, 8, false));
    CHECK(refused(&data_of_ours, 8, true) && refused(&data_of_ours, 8, false));
    CHECK(may_read(&constant_of_ours, 8) && refused(&constant_of_ours, 8, true));
    CHECK(may_read(&stdout, 8) && may_read(&stderr, 8) && refused(&stdout, 8, true) && refused(&stdin, 8, false));
    auto* of_the_system = reinterpret_cast<const void*>(getauxval(AT_SYSINFO_EHDR));  // the vDSO library
    CHECK(!of_the_system || (may_read(of_the_system, 8) && refused(of_the_system, 8, true)));
    CHECK(refused(plus(SIM_FRAME, -(8 << 20) - (64 << 10)), 8, false));  // below the end of any stack
    CHECK(refused(nullptr, 8, false) && refused(reinterpret_cast<void*>(~uintptr_t(0) - 3), 8, false));
    void* foreign = malloc(64);
    CHECK(refused(foreign, 8, true) && refused(foreign, 8, false) && may_write(foreign, 0) && may_read(foreign, 0));
    CHECK(may_write(arena, 256) && may_write(arena + 255, 1) && refused(arena + 252, 8, true) &&
          refused(arena - 1, 2, true));
    CHECK(refused(arena, ~size_t(0), true));
    closes = true;
    CHECK(may_write(arena, 128) && may_read(arena, 128) && refused(arena + 128, 8, true, "host_access"));
    CHECK(refused(arena + 120, 16, false, "host_access") && refused(arena + 255, 1, false, "host_access") && !closed);
    CHECK(!passes(ask_signal, nullptr) && !strcmp(said, "host_access") && said_write);
    faulting = 0;
    closes = false;
    CHECK(may_write(host_names, 32) && refused(host_names + 30, 4, true) && refused(host_names - 1, 2, true));
    sandbox::exception = {reinterpret_cast<uintptr_t>(foreign) + 8, 16};
    CHECK(may_write(plus(foreign, 8), 16) && refused(foreign, 8, true) && refused(plus(foreign, 16), 16, true));
    sandbox::exception = {};
    free(foreign);
}

__attribute__((noinline)) void stacks() {
    CHECK(!*local(0, 32, true) && !*local(24, 8, true) && !*local(0, 32, true, true));
    CHECK(!*local(0, 8, false, true));
    for (bool deeper : {false, true}) {
        bool hit = false;
        // Above the local variable are the saved frame pointer, the return address, and the callers' frames.
        for (long offset = 32; offset < 160; offset += 8)
            hit |= !strcmp(local(offset, 8, true, deeper), "not_its_stack");
        CHECK(hit);
        for (long offset = 64; offset < 160; offset += 8)
            CHECK(!strcmp(local(offset, 8, true, deeper), "not_its_stack"));
        for (long offset = -8; offset >= -64; offset -= 8)
            if (*local(offset, 8, true, deeper)) hit = true;
        CHECK(!strcmp(local(-200, 8, true, deeper), "not_its_stack"));
        CHECK(!*local(64, 8, false, deeper));  // reads are allowed
    }
    // Count offsets from SIM_FRAME: they reach the saved frame pointer, the return address, and deeper frames.
    from_the_frame = true;
    for (long offset : {0, 8, -8, -16, -64}) CHECK(!strcmp(local(offset, 8, true), "not_its_stack"));
    from_the_frame = false;
    only_stack = true;
    CHECK(!*local(0, 32, true) && !strcmp(local(200, 8, true), "not_its_stack"));
    CHECK(!strcmp(local(reinterpret_cast<long>(parts.variable), 8, true), "not_its_stack"));
    only_stack = false;
    long mine = 0;
    CHECK(refused(&mine, 8, true, "not_its_stack") && may_read(&mine, 8));
}

__attribute__((noinline)) void functions() {
    const void* ours = reinterpret_cast<const void*>(&ask);
    CHECK(passes(ask_function, parts.function) && !passes(ask_function, ours) && !strcmp(said, "not_its_function") &&
          !said_bytes);
    CHECK(passes(ask_callable, parts.function) && !passes(ask_callable, plus(parts.function, 1)) &&
          !passes(ask_callable, ours));
    CHECK(passes(ask_callable, parts.bound) && !strcmp(said, ""));
    CHECK(!passes(ask_callable, reinterpret_cast<const void*>(&sim_confine)) && !strcmp(said, "not_its_function"));
    CHECK(passes(ask_function, reinterpret_cast<const void*>(callable.base + callable.bytes - 1)));
    CHECK(!passes(ask_function, reinterpret_cast<const void*>(callable.base + callable.bytes)));
    sandbox::lend(ours);
    CHECK(passes(ask_callable, ours) && !passes(ask_callable, plus(ours, 1)));
    sandbox::lend(nullptr);
    CHECK(passes(ask_variable, parts.variable, 32) && passes(ask_variable, parts.constant, 8));
    CHECK(!passes(ask_variable, &data_of_ours, 8) && !passes(ask_variable, parts.variable, 1 << 20));
    CHECK(!passes(ask_refuse, parts.variable) && !strcmp(said, "not_its_memory"));
    // The simulator's own code may call its functions.
    sandbox::check_function(ours, reinterpret_cast<const void*>(&functions));
}

__attribute__((noinline)) void heap() {
    void* one = sandbox::allocate(100);
    void* two = sandbox::allocate(100);
    CHECK(one && two && one != two && may_write(one, 128) && may_write(two, 128));
    CHECK(labs(static_cast<char*>(two) - static_cast<char*>(one)) >= 128 &&
          reinterpret_cast<uintptr_t>(one) % 128 == 0);
    CHECK(refused(static_cast<char*>(one) - 1, 2, true));  // `one` is the first block of the pool
    CHECK(sandbox::release(two) && sandbox::allocate(128) == two && sandbox::release(one) && sandbox::release(two));
    CHECK(sandbox::allocate(65) == two && sandbox::allocate(128) == one);
    CHECK(!sandbox::release(&data_of_ours) && !sandbox::release(static_cast<char*>(one) + 16) &&
          !sandbox::release(nullptr));
    CHECK(reinterpret_cast<uintptr_t>(sandbox::allocate(1, 4096)) % 4096 == 0);
    CHECK(reinterpret_cast<uintptr_t>(sandbox::allocate(5000)) % 4096 == 0 &&
          reinterpret_cast<uintptr_t>(sandbox::allocate(1, 8192)) % 8192 == 0);
    void* small = sandbox::allocate(1);
    CHECK(static_cast<char*>(sandbox::allocate(32)) == static_cast<char*>(small) + 32 && sandbox::allocate(0));
    void* many[200];
    for (auto& each : many) each = sandbox::allocate(48);
    for (auto& each : many) CHECK(each && sandbox::release(each));
    for (int i = 200; i-- > 0;) CHECK(sandbox::allocate(64) == many[i]);
    CHECK(!sandbox::allocate((size_t(512) << 20) + 1) && !sandbox::allocate(~size_t(0)));
    void* half = sandbox::allocate(size_t(256) << 20);
    CHECK(half && !sandbox::allocate(size_t(512) << 20) && !sandbox::allocate(size_t(256) << 20) &&
          sandbox::allocate(1 << 20));
}

__attribute__((noinline)) void kernels() {
    alignas(Block) static char block_room[2 * sizeof(Block)], thread_room[sizeof(Thread)];
    auto* block = reinterpret_cast<Block*>(block_room);
    auto* thread = reinterpret_cast<Thread*>(thread_room);
    static char stack[1024];
    Fiber fiber = {stack, stack + sizeof stack, nullptr};
    thread->block = block;
    thread->fiber = &fiber;
    owner = block;
    auto in_kernel = [&](const void* data, size_t bytes, bool write) -> const char* {
        said[0] = 0, killed = 0;
        current_thread = thread;
        if (setjmp(from_kernel) == 0) sandbox::check(data, bytes, write, code(), SIM_FRAME);
        current_thread = nullptr;
        CHECK(killed == (said[0] ? 700 : 0));
        return said;
    };
    CHECK(!*in_kernel(shared, 64, true) && !*in_kernel(parts.variable, 8, true) && !*in_kernel(arena, 256, true));
    CHECK(!strcmp(in_kernel(shared + 60, 8, true), "not_its_memory") &&
          !strcmp(in_kernel(&data_of_ours, 8, true), "not_its_memory"));
    CHECK(!*in_kernel(stack, 8, false) && !*in_kernel(stack + 1016, 8, false) &&
          !strcmp(in_kernel(stack, 8, true), "not_its_stack"));
    CHECK(!strcmp(in_kernel(stack + 1024, 8, false), "not_its_memory") &&
          !strcmp(in_kernel(stack - 1, 1, false), "not_its_memory"));
    CHECK(!strcmp(in_kernel(parts.of_the_thread, 8, true), "not_its_memory"));
    long mine = 0;
    CHECK(!strcmp(in_kernel(&mine, 8, false), "not_its_memory"));  // a local variable of the host
}
}  // namespace

int main(int, char** words) {
    long above = 0;  // a local variable of the program that loads the submission
    sandbox::check_function(reinterpret_cast<const void*>(&main), reinterpret_cast<const void*>(&main));
    CHECK(!sandbox::confined && !callable.bytes);
    void* library = dlopen(words[1], RTLD_NOW);
    if (!library) return printf("%s\n", dlerror()), 2;
    reinterpret_cast<void (*)(Parts*)>(dlsym(library, "submission_parts"))(&parts);
    // These two checks have no effect, because the process is not confined yet.
    sandbox::check_function(reinterpret_cast<const void*>(&main), code());
    sandbox::check_variable(&data_of_ours, 8, code());
    sim_confine();
    CHECK(sandbox::confined && callable.base == 1 && callable.bytes == 0);
    sandbox::check(&data_of_ours, 0, true, reinterpret_cast<const void*>(&main), SIM_FRAME);
    CHECK(callable.base == 1);  // not changed by calls from the simulator's code
    CHECK(ends([] { sandbox::check(parts.variable, 8, true, code(), SIM_FRAME); }) == 0);
    for (bool write : {true, false})
        CHECK(ends([=] { sandbox::check(&data_of_ours, 8, write, code(), SIM_FRAME); }) == -1);
    CHECK(ends([] { sandbox::check_function(reinterpret_cast<const void*>(&main), code()); }) == -1);
    CHECK(ends([] { sandbox::check_function(parts.function, code()); }) == 0);
    CHECK(ends([] { sandbox::check_callable(parts.function, code()); }) == 0);
    CHECK(ends([] { sandbox::check_callable(reinterpret_cast<const void*>(&main), code()); }) == -1);
    CHECK(ends([] { sandbox::check_variable(parts.variable, 8, code()); }) == 0);
    CHECK(ends([] { sandbox::check_variable(&data_of_ours, 8, code()); }) == -1);
    CHECK(ends([] { sandbox::check_stack(&data_of_ours, 8, code(), SIM_FRAME); }) == -1);
    CHECK(ends([] { _exit(sandbox::allocate(size_t(512) << 20) && !sandbox::allocate(1) ? 0 : 1); }) == 0);
    places();
    stacks();
    functions();
    heap();
    kernels();
    CHECK(refused(&above + 64, 8, true) && refused(SIM_FRAME + 16, 8, false));
    CHECK(ends([] { sandbox::check(&data_of_ours, 8, true, code(), SIM_FRAME); }) == -1);
    return wrong != 0;
}
