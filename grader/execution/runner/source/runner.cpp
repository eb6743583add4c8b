// The child process: receives requests from the parent, runs a kernel, returns bytes.
//
// usage: runner SOCKET MEGABYTES CPU_SECONDS none|bwrap|landlock simulator|gpu [PATH... [-- PATH...]]
//
// It starts with only a socket, confines itself, replies "ready", and only then loads the kernel, so that even the
// constructors of a submission are confined. "landlock": from then on only the PATHs can be read, and only those after
// the dashes written. "bwrap": it was started in a file system that contains nothing else. See protocol.h for the
// requests.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../jail/source/confine.h"
#include "device.h"
#include "protocol.h"
#include "wire.h"

namespace {

// Applies the requested limits, file restrictions and system call filter. Returns an error message if the system does
// not support one of them, and null on success.
const char* confine_self(char** arguments, int count) {
    const char* tier = arguments[4];
    size_t megabytes = strtoull(arguments[2], nullptr, 10);
    size_t files = megabytes != 0 ? 64 : 0;
    confine::limit({megabytes, static_cast<size_t>(strtoull(arguments[3], nullptr, 10)), 16, files, 0});
    if (strcmp(tier, "none") == 0) return nullptr;
    int reads = 6;
    while (reads < count && strcmp(arguments[reads], "--") != 0) ++reads;
    int writes = reads < count ? reads + 1 : count;
    if (strcmp(tier, "landlock") == 0 &&
        !confine::only_files(arguments + 6, reads - 6, arguments + writes, count - writes))
        return "the system has no Landlock";
    bool gpu = strcmp(arguments[5], "gpu") == 0;
    return (gpu ? confine::only_computing_on_gpu() : confine::only_computing()) ? nullptr : "the system has no seccomp";
}

bool read_value(const char* digits, Argument& argument) {
    size_t length = strlen(digits);
    if (length % 2 != 0 || length / 2 > sizeof argument.value) return false;
    for (size_t i = 0; i < length / 2; ++i) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1) return false;
        argument.value[i] = static_cast<unsigned char>(byte);
    }
    return true;
}

bool read_tensor(const char* line, Argument& argument) {
    int read = 0;
    if (sscanf(line, "%95s %7s %zu %zu %zu %d%n", argument.name, argument.dtype, &argument.place, &argument.bytes,
               &argument.shift, &argument.dimensions, &read) != 6)
        return false;
    if (argument.dimensions < 0 || argument.dimensions > MAX_DIMENSIONS) return false;
    for (int i = 0; i < argument.dimensions; ++i) {
        int length = 0;
        long long size;
        if (sscanf(line + read, "%lld%n", &size, &length) != 1) return false;
        argument.shape[i] = size;
        read += length;
    }
    const char* rest = line + read;
    return *rest == 0 || sscanf(rest, " before %zu", &argument.before) == 1;
}

// Parses the lines of a call after its first line, which describe the arguments.
bool read_arguments(char* lines, Call& call) {
    static ArgumentSet sets[MAX_SETS];
    memset(&sets[0], 0, sizeof sets[0]);
    call.set = sets;
    call.sets = 1;
    while (char* line = next_line(lines)) {
        if (strcmp(line, "next") == 0) {
            if (call.sets == MAX_SETS) return false;
            memset(&sets[call.sets++], 0, sizeof sets[0]);
            continue;
        }
        ArgumentSet& set = sets[call.sets - 1];
        if (set.count == MAX_ARGUMENTS) return false;
        Argument& argument = set.arguments[set.count++];
        bool good = true;
        if (strcmp(line, "stream") == 0) {
            argument.kind = ArgumentKind::stream;
        } else if (strncmp(line, "value ", 6) == 0) {
            argument.kind = ArgumentKind::value;
            good = read_value(line + 6, argument);
        } else if (strncmp(line, "in ", 3) == 0) {
            argument.kind = ArgumentKind::input;
            good = read_tensor(line + 3, argument) && argument.place + argument.bytes <= call.input_bytes;
        } else if (strncmp(line, "out ", 4) == 0 || strncmp(line, "inout ", 6) == 0 ||
                   strncmp(line, "scratch ", 8) == 0) {
            argument.kind = ArgumentKind::output;
            argument.starts_written = line[0] == 'i';
            argument.scratch = line[0] == 's';
            good = read_tensor(strchr(line, ' ') + 1, argument) && argument.place >= GUARD_BYTES &&
                   argument.place + argument.bytes + GUARD_BYTES <= call.output_bytes;
        } else {
            good = false;
        }
        if (!good) return false;
    }
    return true;
}

void* map_file(int file, bool writable, size_t& bytes) {
    struct stat status;
    bytes = 0;
    if (fstat(file, &status) != 0 || status.st_size == 0) return nullptr;
    bytes = static_cast<size_t>(status.st_size);
    void* mapped = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) bytes = 0;
    return mapped == MAP_FAILED ? nullptr : mapped;
}

// Maps the tensors of a call: device memory of the parent, or two files. On failure adds the reason to the reply and
// returns false.
bool map_tensors(Packet& packet, Call& call, size_t outputs, size_t bytes, Text& reply) {
    if (call.on_device) {
        if (packet.file_count == 0 || outputs > bytes) {
            reply.add("error the request cannot be read");
            return false;
        }
        if (!device::map(packet.files[0], bytes, reply)) return false;
        call.input = device::mapped_memory();
        call.output = device::mapped_memory() + outputs;
        call.input_bytes = outputs;
        call.output_bytes = bytes - outputs;
        return true;
    }
    if (packet.file_count > 0)
        call.input = static_cast<unsigned char*>(map_file(packet.files[0], false, call.input_bytes));
    if (packet.file_count > 1)
        call.output = static_cast<unsigned char*>(map_file(packet.files[1], true, call.output_bytes));
    return true;
}

void unmap_tensors(Call& call) {
    if (call.on_device) {
        device::unmap();
        return;
    }
    if (call.input != nullptr) munmap(const_cast<unsigned char*>(call.input), call.input_bytes);
    if (call.output != nullptr) munmap(call.output, call.output_bytes);
}

void answer_call(Packet& packet, char* lines, bool timed, Text& reply) {
    Call call{};
    size_t outputs = 0, bytes = 0;
    char* rest = lines;
    const char* head = next_line(rest);
    int items = timed ? sscanf(head, "time %95s %d %d %zu %zu %zu", call.launcher, &call.warmup, &call.runs,
                               &call.flush, &outputs, &bytes)
                      : sscanf(head, "call %95s", call.launcher);
    call.on_device = timed && items == 6;
    const int before = call.on_device ? 1 : 2;  // files before the report
    call.report = packet.file_count > before ? packet.files[before] : -1;
    if (!map_tensors(packet, call, outputs, bytes, reply)) return;
    if ((items != (timed ? 4 : 1) && !call.on_device) || !read_arguments(rest, call)) {
        reply.add("error the request cannot be read");
    } else if (Thunk thunk = device::find(call.launcher)) {
        Text remarks;
        int code = timed ? device::time(call, thunk, remarks) : device::call(call, thunk, remarks);
        reply.add("done %d\n%.*s", code, static_cast<int>(remarks.size), remarks.bytes);
    } else {
        reply.add("error there is no launcher %s", call.launcher);
    }
    unmap_tensors(call);
}

void answer_run(Packet& packet, char* lines, Text& reply) {
    Call call{};
    call.report = -1;
    size_t outputs = 0, bytes = 0;
    char* rest = lines;
    const char* head = next_line(rest);
    bool good = sscanf(head, "run %95s %zu %zu", call.launcher, &outputs, &bytes) == 3 && outputs <= bytes;
    call.input_bytes = outputs;
    call.output_bytes = bytes - outputs;
    if (!good || packet.file_count != 1 || !read_arguments(rest, call)) {
        reply.add("error the request cannot be read");
    } else if (Thunk thunk = device::find(call.launcher)) {
        Text remarks;
        if (!device::map(packet.files[0], bytes, reply)) return;
        int code = device::run(call, outputs, thunk, remarks);
        reply.add("done %d\n%.*s", code, static_cast<int>(remarks.size), remarks.bytes);
    } else {
        reply.add("error there is no launcher %s", call.launcher);
    }
}

void answer_writer(char* line, Text& reply) {
    char tensor[MAX_NAME];
    int read = 0;
    reply.add("writer\n");
    if (sscanf(line, "writer %95s%n", tensor, &read) != 1) return;
    size_t offset;
    int length = 0;
    for (line += read; sscanf(line, "%zu%n", &offset, &length) == 1; line += length) {
        unsigned by[6];
        if (device::writer(tensor, offset, by))
            reply.add("%u %u %u %u %u %u\n", by[0], by[1], by[2], by[3], by[4], by[5]);
        else
            reply.add("unknown\n");
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 6) {
        fputs("usage: runner SOCKET MEGABYTES CPU_SECONDS none|bwrap|landlock simulator|gpu [PATH... [-- PATH...]]\n",
              stderr);
        return 2;
    }
    int socket = atoi(arguments[1]);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    if (const char* missing = confine_self(arguments, count)) {
        send_text(socket, missing, strlen(missing));
        return 2;
    }
    send_text(socket, "ready", 5);

    Packet packet;
    int tries = 0;
    while (receive_packet(socket, packet, tries)) {
        tries = 0;
        static Text reply;
        reply.size = 0;
        char* text = packet.text;
        if (strncmp(text, "prepare", 7) == 0) {
            if (device::prepare(reply)) reply.add("ok");
        } else if (strncmp(text, "load\n", 5) == 0) {
            if (device::load(text + 5, reply)) reply.add("ok");
        } else if (strncmp(text, "call ", 5) == 0) {
            answer_call(packet, text, false, reply);
        } else if (strncmp(text, "time ", 5) == 0) {
            answer_call(packet, text, true, reply);
        } else if (strncmp(text, "run ", 4) == 0) {
            answer_run(packet, text, reply);
        } else if (strncmp(text, "awake", 5) == 0) {
            device::wake();
            tries = 100000;  // polling this often takes some tens of milliseconds
            reply.add("ok");
        } else if (strncmp(text, "release", 7) == 0) {
            device::unmap();
            reply.add("ok");
        } else if (strncmp(text, "writer ", 7) == 0) {
            answer_writer(text, reply);
        } else if (strncmp(text, "quit", 4) == 0) {
            _exit(0);
        } else {
            reply.add("error unknown request");
        }
        close_files(packet);
        send_text(socket, reply.bytes, reply.size);
    }
    _exit(0);
}
