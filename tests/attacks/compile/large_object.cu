// Builds a library that is larger than the disk.
char large[1L << 36] = {1};
