"""Runs a learner's Python file in a process of its own, in the same sandbox as kernels.

``interpreter.py`` prepares the Python of the sandbox, ``source/worker.py`` is its program, and ``child.py`` starts it,
sends it operations and reads their outcomes. The grader compares these in its own process: a submission can change
everything in its process, but learns neither the reference nor the verdict.
"""
