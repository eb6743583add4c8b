// Detects whether a file exists with `#pragma GCC dependency`.
#pragma GCC dependency "@SOLUTION@"
static_assert(false, "no answer");
