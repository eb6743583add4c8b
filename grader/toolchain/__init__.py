"""From a kernel file to a shared library: compilers, launcher prototypes, builds, the build cache, diagnostics.

Nothing here needs torch, and importing any of it is cheap.
"""
