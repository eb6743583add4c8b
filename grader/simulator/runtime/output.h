// The output of printf in kernels.
#pragma once

#include <stdarg.h>

namespace sim {

const char* take_output();  // returns the text since the last call; valid until the next call
void show_output();         // prints the text to standard output, unless keep_output was called
void keep_output();         // the caller will take the text with take_output

// Reports to the checks what a printf function is about to read: the format, and the strings among its arguments. In a
// confined submission %n ends the launch, because it writes through its argument; CUDA's printf does not support it.
void check_format(const char* format, va_list arguments, const void* code);

}  // namespace sim
