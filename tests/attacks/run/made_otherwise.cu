// Makes the compiler omit the frame pointer of a function, by an attribute.
// Expected: the build is refused.
__attribute__((optimize("omit-frame-pointer"))) static void quietly() {}
