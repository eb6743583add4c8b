"""Tests of the course, and programs that measure it. The import of grader explains missing packages in one line."""

import grader  # noqa: F401
