// The C interface of libsim. Python (ctypes) and the runner call these functions before and after a launch.
//
// A fault inside a kernel ends the launch and never the process, so every function stays callable. Kernel files do not
// use this header; they see the headers in ../include.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIM_EXPORT __attribute__((visibility("default")))

// Allocates a tensor in device memory, aligned to 256 bytes plus `align_offset_bytes`, with a red zone on each side.
// Every byte is 0xFF and counts as never written. Returns null when device memory is full.
SIM_EXPORT void* sim_tensor_alloc(const char* name, const char* dtype, int ndim, const int64_t* shape, size_t bytes,
                                  size_t align_offset_bytes);
SIM_EXPORT void sim_tensor_write(void* device, const void* host, size_t bytes);  // host to device; marks as written
SIM_EXPORT void sim_tensor_read(const void* device, void* host, size_t bytes);   // device to host

// initcheck reports each element of this tensor that no kernel writes.
SIM_EXPORT void sim_expect_output(void* device);

// Kernels receive this tensor as a pointer to const: the checks report a write to it.
SIM_EXPORT void sim_tensor_readonly(void* device);

// Changes a setting until the next change. Returns 0, or -1 for an unknown key or an invalid value.
//   checks             0 | 1      report accesses and synchronization to the checks (default 1)
//   workers            1..64      OS threads that run blocks whose order does not matter (default 1). Results do not
//                                 depend on this number
//   explain            0 | 1      print on stderr why a kernel runs on one worker although more are allowed (default 0)
//   watchdog_seconds   number     CPU seconds without the end of a block after which the launch counts as an infinite
//                                 loop (default 10)
//   spin_rounds        number     rounds in which every live thread polls unchanged memory, after which the
//                                 launch counts as an infinite loop (default 1000000; with one worker)
//   schedule           forward | reverse | random:SEED     order in which ready threads run
//   arena_megabytes    number     size of device memory; only before the first allocation
//   stack_kilobytes    number     stack of one CUDA thread; 0: 576, or 128 with less than 4 GB of address space
//   (default 0)
//   any other key is passed to the checks (max_findings, same_value_races, ...)
SIM_EXPORT int sim_configure(const char* key, const char* value);

// Returns the report as JSON: launches, findings, counters. Valid until the next call of sim_report or sim_reset.
SIM_EXPORT const char* sim_report(void);

// Returns the text that kernels printed since the last call. Valid until the next call.
SIM_EXPORT const char* sim_take_output(void);

// Frees all tensors and device allocations. Clears findings, counters, output and the last CUDA error.
SIM_EXPORT void sim_reset(void);

// Creates a stream other than the default one for launchers. From then on, launcher work on the default stream is a
// finding.
SIM_EXPORT void* sim_give_stream(void);

// Fills `writer` with the block and thread that last wrote this byte of device memory: {block x, y, z, thread x, y, z}.
// Returns 1 if they are known, else 0.
SIM_EXPORT int sim_writer(const void* device, unsigned writer[6]);

// Registers a whole program at its start. From then on it writes a report however it ends (see program.cpp). `reporter`
// is a null-terminated command that displays one, or null; `base` is the program's load address.
SIM_EXPORT void sim_program_starts(const char* const* reporter, const void* base);

// Synchronization between a program's host threads (host_threads.h): sim_host_release before a thread publishes through
// an object, sim_host_acquire after a thread has read from it, sim_host_start in place of pthread_create (`create`).
SIM_EXPORT void sim_host_release(const void* object);
SIM_EXPORT void sim_host_acquire(const void* object);
SIM_EXPORT int sim_host_start(int (*create)(void*, const void*, void* (*)(void*), void*), void* thread,
                              const void* attributes, void* (*function)(void*), void* argument);

#ifdef __cplusplus
}
#endif
