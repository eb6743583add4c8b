"""Compilation of a kernel file to a shared library: the build plan, the compiler's messages, nvcc's resource usage.

Only the module ``inline`` imports torch; the other modules are imported quickly.
"""
