"""The jail in which untrusted kernels compile and run: native code could otherwise do all that its user can.

Three tiers. The best one that works here is taken, unless ``GRADER_JAIL`` names one:

bwrap      bubblewrap and seccomp. The process has a file system of its own with a handful of libraries in it, no
           network, no other processes in sight; seccomp leaves it only the system calls that computing needs.
landlock   Landlock and seccomp, where bubblewrap may not make namespaces (in most containers). The file system is there,
           but only those libraries can be opened.
none       A process of its own, with the user's rights.

Kernels on a real GPU have the same tiers, with what ``driver.py`` lists for CUDA and a list of system calls that are
refused in place of one of those that are left. Whether a tier holds is tried, not assumed:
``grader/execution/runner/canary.py`` runs a program in it that tries to get out. As root, all of this first becomes the
user "nobody", where it can (``staging.py`` brings the files within its reach).

``source/confine.h`` is what a process does to itself, used by the runner before it loads a kernel and by
``compile.cpp`` before it becomes a compiler. ``running.py`` and ``compiling.py`` start these.
"""
