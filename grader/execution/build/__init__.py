"""Compilation of a kernel file to a shared library: the build plan, the compiler's messages, nvcc's resource usage.

Only ``inline`` needs torch; importing any of the others is cheap.
"""
