"""Other people's machines, made here: ``python -m tests.machines`` (as root, on Debian or Ubuntu)."""
