"""From a kernel file to a shared library: the plan of a build, the compiler's messages, what nvcc makes of each kernel.

Nothing here needs torch but ``inline``, and importing any of it is cheap.
"""
