// Makes the compiler load a plugin.
#pragma GCC plugin "/tmp/evil.so"
#pragma GCC pch_preprocess "/etc/passwd"
static_assert(false, "no plugin");
