"""Measurements on a real GPU, run by hand and never by ``make test``. See ``python -m tests.gpu.verify -h``."""
