// The C interface of libsim: what the Python side (through ctypes) and the runner call around a launch.
//
// Every function is safe to call from a process that goes on living: a fault inside a kernel ends the launch, never the
// process. Nothing here is needed by a kernel file; kernels see the headers in ../include.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIM_EXPORT __attribute__((visibility("default")))

// A tensor in device memory: 256-byte aligned plus `align_offset_bytes`, red zones on both sides, every byte 0xFF and
// counted as "never written". Null when the device memory is full.
SIM_EXPORT void* sim_tensor_alloc(const char* name, const char* dtype, int ndim, const int64_t* shape, size_t bytes,
                                  size_t align_offset_bytes);
SIM_EXPORT void sim_tensor_write(void* device, const void* host, size_t bytes);  // host to device; marks as written
SIM_EXPORT void sim_tensor_read(const void* device, void* host, size_t bytes);   // device to host

// Tells initcheck that the kernel must write every element of this tensor.
SIM_EXPORT void sim_expect_output(void* device);

// Tells the checks that kernels get this tensor as a pointer to const: a write to it is a finding.
SIM_EXPORT void sim_tensor_readonly(void* device);

// Settings, kept until changed: returns 0, or -1 for an unknown key or a bad value.
//   checks             0 | 1      report accesses and synchronization to the checks (default 1)
//   workers            1..64      OS threads that run blocks, where their order does not matter (default 1). No result
//                                 depends on their number
//   explain            0 | 1      say on stderr why a kernel has one worker, where more are wanted (default 0)
//   watchdog_seconds   number     CPU time without the end of a block that is an infinite loop (default 10)
//   spin_rounds        number     so many looks at what nobody changes, by all threads that are left, are an infinite
//                                 loop as well, whatever the time (default 1000000; with one worker)
//   schedule           forward | reverse | random:SEED     order in which ready threads run
//   arena_megabytes    number     size of device memory; only before the first allocation
//   stack_kilobytes    number     stack of one CUDA thread; 0: 576, or 128 with less than 4 GB of address space (default 0)
//   any other key is offered to the checks (max_findings, ...)
SIM_EXPORT int sim_configure(const char* key, const char* value);

// JSON: launches, findings, counters. Valid until the next call of sim_report or sim_reset.
SIM_EXPORT const char* sim_report(void);

// What kernels printed since the last call. Valid until the next call.
SIM_EXPORT const char* sim_take_output(void);

// Frees all tensors and device allocations, clears findings, counters, output and the last CUDA error.
SIM_EXPORT void sim_reset(void);

// A stream for launchers that is not the default one. From now on their work on the default stream is a finding.
SIM_EXPORT void* sim_give_stream(void);

// Block and thread that last wrote this byte of device memory, as {block x, y, z, thread x, y, z}: 1 if known, else 0.
SIM_EXPORT int sim_writer(const void* device, unsigned writer[6]);

// The start of a whole program: from now on its end, whatever it is, leaves a report (see program.cpp). `reporter` is a
// command that shows one, null at its end, or null; `base` is where the program is loaded.
SIM_EXPORT void sim_program_starts(const char* const* reporter, const void* base);

// Where a program's threads meet (host_threads.h): before one leaves something at an object, after one found something there, and
// in place of pthread_create, which is `create`.
SIM_EXPORT void sim_host_release(const void* object);
SIM_EXPORT void sim_host_acquire(const void* object);
SIM_EXPORT int sim_host_start(int (*create)(void*, const void*, void* (*)(void*), void*), void* thread,
                              const void* attributes, void* (*function)(void*), void* argument);

#ifdef __cplusplus
}
#endif
