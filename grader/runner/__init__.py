"""The child process that runs kernels, and the client that talks to it."""
