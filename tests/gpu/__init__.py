"""What can only be checked on a real GPU: run by hand there, never by ``make test``. See ``python -m tests.gpu.verify -h``."""
