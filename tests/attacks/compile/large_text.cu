// Makes the assembler write unlimited output.
__attribute__((section(".rodata\n.fill 1 << 34\n#"))) int here = 1;
