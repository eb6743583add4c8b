"""What only a real GPU can show: run by hand there, never by ``make test``. See ``python -m tests.gpu.verify -h``."""
