"""The sandbox in which untrusted kernels are compiled and run.

A kernel is native code, and would otherwise have all rights of the user who runs the grader. There are three kinds of
sandbox, called tiers. The best one that works on this machine is used, unless ``GRADER_JAIL`` names a tier:

- ``bwrap`` uses bubblewrap and seccomp. The process has its own file system with a few libraries in it and no network,
  and it does not see other processes. seccomp allows only the system calls that computing needs.
- ``landlock`` uses Landlock and seccomp. It is for systems where bubblewrap must not create namespaces, such as most
  containers. The process sees the file system, but can open only the same few libraries.
- ``none`` is a separate process with the user's rights.

Kernels on a real GPU have the same tiers, with two differences: the files of ``driver.py`` are accessible, and seccomp
has a list of forbidden system calls instead of allowed ones. ``grader/execution/runner/canary.py`` tests a tier: it
runs a program that tries to escape. If the grader runs as root, the process first becomes the user "nobody", if
possible; ``staging.py`` makes the files accessible to this user.

A process confines itself with the functions of ``source/confine.h``. The runner does so before it loads a kernel, and
``compile.cpp`` before it becomes a compiler. ``running.py`` and ``compiling.py`` start these two programs.
"""
