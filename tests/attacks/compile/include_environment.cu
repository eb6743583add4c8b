// Includes the compiler's environment variables from /proc.
#define PLACE "/proc/self/environ"
#include PLACE
