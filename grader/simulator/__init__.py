"""The simulated GPU: a front end that turns CUDA into C++, headers, a runtime, and the checks."""
