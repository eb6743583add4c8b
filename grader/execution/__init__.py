"""Build a kernel file, confine it and run it.

``build`` compiles a kernel file into a library. ``jail`` confines compilers and submissions. ``runner`` is the child
process that runs a submission, ``in_process`` loads a kernel into this process (``load_kernel``), ``programs`` builds
and runs whole programs (``grader run``, ``grader nvcc``).
"""
