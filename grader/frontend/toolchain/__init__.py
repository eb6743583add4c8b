"""The build tools of this machine: compilers, how they are run, the build cache, and the limits of each GPU.

The modules here do not know what is built with these tools.
"""
