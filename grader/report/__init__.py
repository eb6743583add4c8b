"""Reports on a verdict: in the terminal, as JUnit XML, as one HTML page.

This package lays out the reports; ``grader.verdict.wording`` has their texts.
"""
