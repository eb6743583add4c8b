// Embeds the bytes of the solution in the library with .incbin.
asm(".incbin \"@SOLUTION@\"");
