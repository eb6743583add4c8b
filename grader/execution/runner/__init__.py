"""The child process that runs kernels, and the client that talks to it.

A kernel is native code: whatever shares a process with it can be forged by it. So it runs in a child that is given
bytes and gives back bytes, and everything that decides a verdict stays in the parent:

- The child is a small C++ program without Python and torch (``source/``). It loads the simulator and the kernel
  (``device_simulator.cpp``), or a kernel compiled by nvcc (``device_cuda.cu``).
- Parent and child share a Unix socket of whole packets. A request is a text, one item per line, with up to three files
  attached: the inputs (a memfd sealed against writing), the outputs (a memfd of fixed size, filled by the parent with a
  random NaN pattern and with random guards around each output) and one for the child's own report.
- An answer (``answers.py``) means only "look now". The parent looks at its own memfd, and compares in float64 what it
  finds there with what its own copy of the inputs asks for. What an answer says (a CUDA error, a finding, a time) can
  make a verdict worse, never better.
- No child can know the inputs of a case before the request that carries them, and the parent owns the clock.

The requests, all of them in ``source/protocol.h``; these are most used::

    load           libsim and kernel by path, settings of the simulator
    call NAME      one launcher with its arguments: tensors by place in the two memfds, numbers as bytes
    time NAME      the same launcher many times over several sets of arguments
    writer T N...  who wrote the bytes at these offsets of tensor T (simulator only)
"""
