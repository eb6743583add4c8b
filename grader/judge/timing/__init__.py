"""Measurement of times on a GPU for ``grader bench`` and the stage *fast*, and lower bounds of a kernel's time."""
