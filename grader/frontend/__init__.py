"""Translation of CUDA C++ to C++ that calls the simulator: the tokenizer, parsers for parts of a file, the rewrite.

Every function here maps text to text: none runs a compiler or opens a file.
"""
