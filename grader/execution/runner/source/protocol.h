// The parent's requests and the child's replies, as C structures.
//
// A packet is a text, one item per line. The first word of a line is its type. File descriptors are sent with a packet.
//
//   load                                     reply: "ok", or "error" and a text
//     libsim PATH                            simulator only
//     kernel PATH
//     set KEY VALUE                          a setting of the simulator
//   call LAUNCHER                            calls a launcher once. Files: inputs, outputs, report. reply: "done CODE"
//                                            and a line "remark KIND TEXT" for each remark, or "error" and a text
//     in NAME DTYPE PLACE BYTES SHIFT NDIM SIZES...
//     out NAME DTYPE PLACE BYTES SHIFT NDIM SIZES...
//     inout NAME ...                         an output that the kernel may read, because it has initial values
//     scratch NAME ...                       working memory: an output that need not be written
//     value BYTES_IN_HEX
//     stream
//   time LAUNCHER WARMUP RUNS FLUSH          calls a launcher many times. Files and reply are those of "call"; the
//                                            report file receives the times. Before each run, FLUSH bytes of other
//                                            device memory are read, so that no input stays in the cache
//     ...                                    several sets of arguments, separated by lines "next"
//                                            The first line may end in " OUTPUTS BYTES", as that of "run": the tensors
//                                            are then copied from the parent's device memory. Files: memory, report
//   run LAUNCHER OUTPUTS BYTES               calls a launcher on device memory of the parent. File: that memory, which
//                                            the child maps only now. reply: that of "call", when the device is idle
//     ...                                    arguments. PLACE is an offset from the start of the memory for an input,
//                                            and from the byte OUTPUTS for an output
//   awake                                    reply: "ok", when process and device are warm. The child then polls for the
//                                            next request, which follows at once
//   release                                  unmaps the memory of the last "run". reply: "ok"
//   writer TENSOR OFFSET...                  reply: "writer", and for each offset a line with the block and the thread
//                                            that wrote it, "X Y Z X Y Z", or "unknown"
//   quit
//
// The arguments are in the launcher's order. PLACE is the offset of a tensor's bytes in its file. SHIFT is the required
// distance of the tensor from a 256-byte boundary. Each output lies between two guards of GUARD_BYTES in its file. A
// tensor's line may end in "before BYTES": the launcher then gets a pointer that many bytes before the tensor, as if the
// tensor were the end of a larger one.
//
// KIND is launch, run, memory, changed, setup or fetch. "remark report" without a text means that the report could not
// be written.
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
