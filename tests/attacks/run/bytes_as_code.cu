// Places data bytes in executable memory.
// Expected: the build is refused.
__attribute__((section(".text#"), used)) static const unsigned char code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xc3};
