"""Measurements on a real GPU, which ``make test`` does not run. See ``python -m tests.gpu.verify -h``."""
