"""Comparison of an output with its reference, and diagnosis of a wrong output."""
