// The parent's requests and the child's replies, as C structures.
//
// A packet is a text, one item per line. The first word of a line is its type. File descriptors are sent with a packet.
//
//   load                                     reply: "ok", or "error" and a text
//     libsim PATH                            simulator only
//     kernel PATH
//     set KEY VALUE                          a setting of the simulator
//   call LAUNCHER                            files: inputs, outputs, report. reply: "done CODE" and a line
//                                            "remark KIND TEXT" for each remark, or "error" and a text
//     in NAME DTYPE PLACE BYTES SHIFT NDIM SIZES...
//     out NAME DTYPE PLACE BYTES SHIFT NDIM SIZES...
//     inout NAME ...                         an output that the kernel may read, because it has initial values
//     scratch NAME ...                       working memory: an output that need not be written
//     value BYTES_IN_HEX
//     stream
//   time LAUNCHER WARMUP RUNS FLUSH          files: as call. reply: as call; the report holds the times
//     ...                                    arguments as above, the line "next" before each further set. Before each
//                                            run FLUSH bytes of other device memory are read, so that no
//                                            input stays in the cache (0: none)
//   run LAUNCHER OUTPUTS BYTES               files: device memory from the parent, which the child maps now and not
//                                            before. reply: as call, when the device is idle
//     ...                                    arguments as above. PLACE counts from the start for inputs, from OUTPUTS
//                                            on for outputs
//   awake                                    reply: "ok", when process and device are warm. The next request follows at
//                                            once: the child polls for it
//   release                                  reply: "ok", when the memory of the last run is unmapped
//   writer TENSOR OFFSET...                  reply: "writer" and per offset a line "X Y Z X Y Z" or "unknown"
//   quit
//
// A tensor's line may end in "before BYTES": the launcher gets a pointer that many bytes before the tensor, which is
// the end of a larger tensor without its beginning.
//
// KIND is launch, run, memory, changed, setup or fetch; "remark report" has no text: the report could not be written.
// PLACE is the offset of a tensor's bytes in its file, SHIFT the required distance from a 256-byte boundary. Arguments
// are in the launcher's order. Each output lies between two guards of GUARD_BYTES in its file.
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
