"""CUDA C++ as text: its tokens, launchers and kernels, and its translation into C++ that calls the simulator.

From text to text: no compiler runs here, and nothing is opened.
"""
