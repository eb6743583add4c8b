// The runner's device on a machine without a GPU: libsim and a kernel compiled against it, both loaded at run time.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "device.h"

namespace {

// The functions of the simulator's api.h that the runner uses.
struct Simulator {
    void* (*tensor_alloc)(const char*, const char*, int, const int64_t*, size_t, size_t);
    void (*tensor_write)(void*, const void*, size_t);
    void (*tensor_read)(const void*, void*, size_t);
    int (*configure)(const char*, const char*);
    const char* (*report)();
    const char* (*take_output)();
    void (*reset)();
    void (*expect_output)(void*);
    void (*readonly)(void*);
    int (*writer)(const void*, unsigned*);
    const char* (*error_name)(int);
    const char* (*error_string)(int);
    void (*confine)();
    int (*call)(Thunk, void**);
} simulator;

bool checked = true;  // whether the simulator checks accesses

void* kernel = nullptr;
ArgumentSet* last = nullptr;

// The memory that the parent passes for `run`. A file stands in for device memory.
unsigned char* mapped = nullptr;
size_t mapped_size = 0;

template <typename F>
bool resolve(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
}

bool load_simulator(const char* path, Text& reply) {
    void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
        reply.add("error %s", dlerror());
        return false;
    }
    resolve(library, "sim_cudaGetErrorName", simulator.error_name);
    resolve(library, "sim_cudaGetErrorString", simulator.error_string);
    resolve(library, "sim_writer", simulator.writer);
    resolve(library, "sim_tensor_readonly", simulator.readonly);
    resolve(library, "sim_confine", simulator.confine);
    resolve(library, "sim_call", simulator.call);
    void* (*give_stream)();
    if (resolve(library, "sim_give_stream", give_stream)) given_stream = give_stream();
    bool whole =
        resolve(library, "sim_tensor_alloc", simulator.tensor_alloc) &&
        resolve(library, "sim_tensor_write", simulator.tensor_write) &&
        resolve(library, "sim_tensor_read", simulator.tensor_read) &&
        resolve(library, "sim_configure", simulator.configure) && resolve(library, "sim_report", simulator.report) &&
        resolve(library, "sim_take_output", simulator.take_output) && resolve(library, "sim_reset", simulator.reset) &&
        resolve(library, "sim_expect_output", simulator.expect_output);
    if (!whole) reply.add("error %s is not the simulator", path);
    return whole;
}

// Copies the tensors of one set of arguments to device memory. The simulator regards outputs as not yet written.
bool place(Call& call, ArgumentSet& set, Text& reply) {
    for (int i = 0; i < set.count; ++i) {
        Argument& a = set.arguments[i];
        if (a.kind != ArgumentKind::input && a.kind != ArgumentKind::output) continue;
        a.device = simulator.tensor_alloc(a.name, a.dtype, a.dimensions, a.shape, a.bytes, a.shift);
        if (a.device == nullptr) {
            reply.add("remark memory %s\n", a.name);
            return false;
        }
        if (a.kind == ArgumentKind::input) {
            simulator.tensor_write(a.device, call.input + a.place, a.bytes);
            if (simulator.readonly != nullptr) simulator.readonly(a.device);
        } else if (a.starts_written) {
            simulator.tensor_write(a.device, call.output + a.place, a.bytes);
        } else {
            memcpy(a.device, call.output + a.place, a.bytes);
            if (!a.scratch) simulator.expect_output(a.device);
        }
    }
    return true;
}

void remark_error(int code, Text& reply) {
    if (code == 0) return;
    const char* name = simulator.error_name != nullptr ? simulator.error_name(code) : "";
    const char* text = simulator.error_string != nullptr ? simulator.error_string(code) : "";
    reply.add("remark launch %s: %s\n", name, text);
}

// Adds a remark for each input that the kernel has changed.
void remark_changed_inputs(Call& call, ArgumentSet& set, Text& reply) {
    for (int i = 0; i < set.count; ++i) {
        Argument& a = set.arguments[i];
        if (a.kind == ArgumentKind::input && a.bytes != 0 && memcmp(a.device, call.input + a.place, a.bytes) != 0)
            reply.add("remark changed %s\n", a.name);
    }
}

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

}  // namespace

namespace device {

bool prepare(Text&) { return true; }

bool load(char* lines, Text& reply) {
    while (char* line = next_line(lines)) {
        if (strncmp(line, "libsim ", 7) == 0) {
            if (!load_simulator(line + 7, reply)) return false;
        } else if (strncmp(line, "kernel ", 7) == 0) {
            if (checked && simulator.confine != nullptr) simulator.confine();
            kernel = dlopen(line + 7, RTLD_NOW | RTLD_LOCAL);
            if (kernel == nullptr) {
                reply.add("error %s", dlerror());
                return false;
            }
        } else if (strncmp(line, "set ", 4) == 0) {
            char* value = strchr(line + 4, ' ');
            if (value == nullptr || simulator.configure == nullptr) continue;
            *value++ = 0;
            if (strcmp(line + 4, "checks") == 0) checked = strcmp(value, "0") != 0;
            if (simulator.configure(line + 4, value) != 0) {
                reply.add("error the simulator does not take %s = %s", line + 4, value);
                return false;
            }
        }
    }
    return kernel != nullptr;
}

Thunk find(const char* launcher) {
    char name[MAX_NAME + 16];
    snprintf(name, sizeof name, "grader_call_%s", launcher);
    return reinterpret_cast<Thunk>(dlsym(kernel, name));
}

int call(Call& call, Thunk thunk, Text& reply) {
    simulator.reset();
    last = &call.set[0];
    if (!place(call, *last, reply)) return 2;

    void* pointers[MAX_ARGUMENTS];
    fill_pointers(*last, pointers);
    int code = simulator.call != nullptr ? simulator.call(thunk, pointers) : thunk(pointers);
    remark_error(code, reply);

    for (int i = 0; i < last->count; ++i) {
        Argument& a = last->arguments[i];
        if (a.kind == ArgumentKind::output) simulator.tensor_read(a.device, call.output + a.place, a.bytes);
    }
    remark_changed_inputs(call, *last, reply);

    const char* printed = simulator.take_output();
    if (printed != nullptr) fputs(printed, stdout);
    fflush(stdout);
    if (call.report >= 0) {
        const char* report = simulator.report();
        if (report != nullptr && !write_all(call.report, report, strlen(report))) reply.add("remark report\n");
    }
    return code;
}

int time(Call& call, Thunk thunk, Text& reply) {
    simulator.reset();
    for (int s = 0; s < call.sets; ++s)
        if (!place(call, call.set[s], reply)) return 2;
    last = &call.set[0];

    int code = 0;
    void* pointers[MAX_ARGUMENTS];
    for (int run = -call.warmup; run < call.runs && code == 0; ++run) {
        ArgumentSet& set = call.set[(run + call.warmup) % call.sets];
        fill_pointers(set, pointers);
        double start = now();
        code = thunk(pointers);
        double end = now();
        char line[64];
        int length = snprintf(line, sizeof line, "%.3f\n", end - start);
        if (run >= 0 && call.report >= 0) write_all(call.report, line, static_cast<size_t>(length));
    }
    remark_error(code, reply);
    for (int i = 0; i < last->count; ++i) {
        Argument& a = last->arguments[i];
        if (a.kind == ArgumentKind::output) simulator.tensor_read(a.device, call.output + a.place, a.bytes);
    }
    simulator.take_output();
    return code;
}

void wake() {}

unsigned char* mapped_memory() { return mapped; }

void unmap() {
    if (mapped != nullptr) munmap(mapped, mapped_size);
    mapped = nullptr;
}

bool map(int file, size_t bytes, Text& reply) {
    unmap();
    void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) {
        reply.add("error the device's memory cannot be mapped");
        return false;
    }
    mapped = static_cast<unsigned char*>(place);
    mapped_size = bytes;
    return true;
}

int run(Call& call, size_t outputs, Thunk thunk, Text& reply) {
    call.input = mapped;
    call.output = mapped + outputs;
    return device::call(call, thunk, reply);
}

bool writer(const char* tensor, size_t offset, unsigned found[6]) {
    if (last == nullptr || simulator.writer == nullptr) return false;
    for (int i = 0; i < last->count; ++i) {
        Argument& a = last->arguments[i];
        if (strcmp(a.name, tensor) == 0 && a.device != nullptr && offset < a.bytes)
            return simulator.writer(static_cast<char*>(a.device) + offset, found) == 1;
    }
    return false;
}

}  // namespace device
