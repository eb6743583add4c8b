"""Whole CUDA programs: several files with a ``main``, own headers and arguments, run on the simulated GPU."""
