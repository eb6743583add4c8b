"""Tests on fresh Debian machines: ``python -m tests.machines`` (as root, on Debian or Ubuntu)."""
