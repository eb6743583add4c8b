"""Confinement of a submission inside its own process, where the simulator that checks it also runs.

``grader/simulator/submission_sandbox/README.md`` describes these modules and the C++ files that belong to them.
"""
