"""The sandbox in which untrusted kernels are compiled and run: native code with the rights of its user.

There are three tiers. The best one that works here is used, unless ``GRADER_JAIL`` names one:

bwrap      bubblewrap and seccomp. The process has its own file system with a few libraries in it, no network, and sees
           no other processes; seccomp allows only the system calls that computing needs.
landlock   Landlock and seccomp, if bubblewrap may not create namespaces (in most containers). The file system is
           visible, but only those libraries can be opened.
none       A separate process with the user's rights.

Kernels on a real GPU have the same tiers, with the files of ``driver.py`` for CUDA, and a list of forbidden system
calls instead of a list of allowed ones. The tiers are tested: ``grader/execution/runner/canary.py`` runs a program that
tries to escape. As root, the process first becomes the user "nobody", if it can (``staging.py`` makes the files
accessible to it).

A process confines itself with ``source/confine.h``: the runner before it loads a kernel, and ``compile.cpp`` before it
becomes a compiler. ``running.py`` and ``compiling.py`` start these.
"""
