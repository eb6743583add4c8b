// The names under which a kernel library finds what its compiler inserted calls of.
//
// -fsanitize=thread and its like call functions of the compiler's own libraries, which other libraries of the process may
// bring along. So kernel libraries are linked with --wrap=__tsan_read4 (grader/simulator/hooks.py has the list), and what
// they then ask for is __wrap___tsan_read4: a name that only the simulator has.
#pragma once

#define HOOK(RESULT, NAME) extern "C" __attribute__((visibility("default"))) RESULT __wrap_##NAME
