"""The lessons' drawings without measured data: memory layouts, the data that each thread owns, and data flow.

Each module has the drawings of one subject, and each function draws one figure, so that a lesson needs one line for it.
"""
