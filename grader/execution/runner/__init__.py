"""The child process that runs kernels, and the client that talks to it.

A kernel is native code and can change anything in its own process. It therefore runs in a child process that receives
and returns bytes, and everything that determines a verdict stays in the parent:

- The child is a small C++ program without Python and torch (``source/``). It loads the simulator and the kernel
  (``device_simulator.cpp``), or a kernel compiled by nvcc (``device_cuda.cu``).
- Parent and child share a Unix socket of whole packets. A request is a text, one item per line, with up to three files
  attached: the inputs (a memfd sealed against writing), the outputs (a memfd of fixed size, filled by the parent with a
  random NaN pattern and with random guards around each output) and one for the child's own report.
- An answer (``answers.py``) only means that the outputs are ready. The parent reads its own memfd, and compares it in
  float64 with the reference on its own copy of the inputs. The contents of an answer (a CUDA error, a finding, a time)
  can make a verdict worse, never better.
- The child gets the inputs of a case only with the request that carries them, and the parent measures time.

The most important requests, all of them defined in ``source/protocol.h``::

    load           libsim and kernel by path, settings of the simulator
    call NAME      one launcher with its arguments: tensors by place in the two memfds, numbers as bytes
    time NAME      the same launcher many times over several sets of arguments
    writer T N...  the thread that wrote the bytes at these offsets of tensor T (simulator only)
"""
