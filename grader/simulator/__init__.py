"""The simulated GPU: headers, a runtime, checks, and the Python code that reads its reports."""
