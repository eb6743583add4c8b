"""Translation of CUDA C++ source text: tokens, launchers, kernels, and the rewrite to C++ that calls the simulator.

Every function here maps text to text: none runs a compiler or opens a file.
"""
