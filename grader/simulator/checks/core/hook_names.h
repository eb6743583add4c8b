// The names of the hooks that compilers insert calls to.
//
// -fsanitize=thread and similar options call functions of the compiler's own libraries, which other libraries in the
// process may also define. So kernel libraries are linked with --wrap=__tsan_read4 (grader/simulator/hooks.py has the
// list) and then refer to __wrap___tsan_read4, which only the simulator defines.
#pragma once

#define HOOK(RESULT, NAME) extern "C" __attribute__((visibility("default"))) RESULT __wrap_##NAME
