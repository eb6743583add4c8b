"""The build tools of this machine: compilers, how they are run, the build cache, and the limits of each GPU.

Nothing here depends on what is built.
"""
