// The parent's requests and the child's replies, as C structures.
//
// A packet is a text, one item per line. The first word of a line is its type. File descriptors are sent with a packet.
// These are the requests:
//
// - prepare: initializes the device. The parent sends it to a runner that it starts before the kernel is built. The reply
//   is "ok", or "error" and a text.
// - load: loads the libraries. Its lines are "libsim PATH" (simulator only), "kernel PATH", and "set KEY VALUE" for each
//   setting of the simulator. The reply is "ok", or "error" and a text.
// - call LAUNCHER: calls a launcher once. Its lines are the arguments. Its files are the inputs, the outputs and the
//   report. The reply is "done CODE" and a line "remark KIND TEXT" for each remark, or "error" and a text.
// - time LAUNCHER WARMUP RUNS FLUSH: calls a launcher many times. Its lines are several sets of arguments, separated by
//   lines "next". Its files and reply are those of "call"; the report file receives the times. Before each run, FLUSH
//   bytes of other device memory are read, so that no input stays in the cache. The first line may end in
//   " OUTPUTS BYTES", as that of "run": the tensors are then copied from the parent's device memory, and the files are
//   this memory and the report.
// - run LAUNCHER OUTPUTS BYTES: calls a launcher on device memory of the parent. Its lines are the arguments; PLACE is an
//   offset from the start of the memory for an input, and from the byte OUTPUTS for an output. Its file is that memory,
//   which the child maps only now. The reply is that of "call", when the device is idle.
// - awake: prepares a "run". The reply is "ok", when process and device are warm. The child then polls for the next
//   request, which follows at once.
// - release: unmaps the memory of the last "run". The reply is "ok".
// - writer TENSOR OFFSET...: asks which threads wrote the bytes at these offsets. The reply is "writer", and for each
//   offset a line with the block and the thread, "X Y Z X Y Z", or "unknown".
// - quit: ends the child.
//
// These are the lines of arguments:
//
// - in NAME DTYPE PLACE BYTES SHIFT NDIM SIZES... is an input.
// - out NAME DTYPE PLACE BYTES SHIFT NDIM SIZES... is an output.
// - inout NAME ... is an output that the kernel may read, because it has initial values.
// - scratch NAME ... is working memory: an output that need not be written.
// - value BYTES_IN_HEX is a number.
// - stream is the CUDA stream.
//
// The arguments are in the launcher's order. PLACE is the offset of a tensor's bytes in its file. SHIFT is the required
// distance of the tensor from a 256-byte boundary. Each output lies between two guards of GUARD_BYTES in its file. A
// tensor's line may end in "before BYTES": the launcher then gets a pointer that many bytes before the tensor, as if the
// tensor were the end of a larger one.
//
// KIND is launch, run, memory, changed, setup, fetch or allocated. The last one tells the device memory, in bytes, that
// the launcher of a "time" request allocated. "remark report" without a text means that the report could not be written.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GUARD_BYTES = 4096, MAX_ARGUMENTS = 64, MAX_SETS = 64, MAX_DIMENSIONS = 8, MAX_PACKET = 65536, MAX_NAME = 96 };

enum class ArgumentKind { input, output, value, stream };

struct Argument {
    ArgumentKind kind;
    char name[MAX_NAME];
    char dtype[8];
    size_t place;
    size_t bytes;
    size_t shift;
    bool starts_written;  // an in-out tensor, which has values before the call
    bool scratch;         // working memory, which the kernel need not write
    int dimensions;
    int64_t shape[MAX_DIMENSIONS];
    void* device;             // the tensor's address on the device
    size_t before;            // distance in bytes from the launcher's pointer to the tensor
    uintptr_t pointer;        // the pointer passed to the launcher
    unsigned char value[16];  // the bytes of an argument that is a number
};

// One set of arguments for a launcher.
struct ArgumentSet {
    int count;
    Argument arguments[MAX_ARGUMENTS];
};

struct Call {
    char launcher[MAX_NAME];
    int warmup;
    int runs;
    size_t flush;
    int sets;
    ArgumentSet* set;            // array of `sets` elements
    bool on_device;              // `input` and `output` are device memory of the parent, not mapped files
    const unsigned char* input;  // the mapped input file; `output` is the mapped output file
    size_t input_bytes;
    unsigned char* output;
    size_t output_bytes;
    int report;  // file descriptor, -1 if there is none
};

using Thunk = int (*)(void** arguments);

// The stream that launchers receive; null is the default stream.
inline void* given_stream = nullptr;

// Fills the array that a launcher's thunk receives: a pointer to the value of each argument.
inline void fill_pointers(ArgumentSet& set, void** pointers) {
    for (int i = 0; i < set.count; ++i) {
        Argument& argument = set.arguments[i];
        if (argument.kind == ArgumentKind::stream) {
            pointers[i] = &given_stream;
        } else if (argument.kind == ArgumentKind::value) {
            pointers[i] = argument.value;
        } else {
            argument.pointer = reinterpret_cast<uintptr_t>(argument.device) - argument.before;
            pointers[i] = &argument.pointer;
        }
    }
}
