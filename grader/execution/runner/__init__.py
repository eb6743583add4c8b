"""The child process that runs kernels, and the client that talks to it.

A kernel is native code and can change anything in its own process. It therefore runs in a child process that receives
and returns bytes, and everything that determines a verdict stays in the parent:

- The child is a small C++ program without Python and torch (``source/``). It loads the simulator and the kernel
  (``device_simulator.cpp``), or a kernel compiled by nvcc (``device_cuda.cu``).
- Parent and child are connected by a Unix socket of type SOCK_SEQPACKET. A request is a text, one item per line, with
  up to three file descriptors: the inputs (a memfd sealed against writing), the outputs (a memfd of fixed size, filled
  by the parent with a random NaN pattern and with random guards around each output) and a file for the child's report.
- An answer (``answers.py``) only means that the outputs are ready. The parent reads its own memfd, and compares it in
  float64 with the reference on its own copy of the inputs. The contents of an answer (a CUDA error, a finding, a time)
  can make a verdict worse, never better.
- The child sees the inputs of a case only while it runs that case. The parent measures time.

These are the most important requests; ``source/protocol.h`` defines all of them:

- ``load`` loads libsim and the kernel by their paths, and configures the simulator.
- ``call NAME`` calls a launcher. A tensor is passed as an offset in one of the two memfds, a number as bytes.
- ``time NAME`` calls a launcher many times with several sets of arguments, and reports the times.
- ``writer T N...`` returns the threads that wrote the bytes at the offsets N... of tensor T (simulator only).
"""
