"""The lessons' drawings without measured data: memory layouts, which thread owns what, and data flow.

Each module has the drawings of one subject, and each function draws one figure, so that a lesson needs one line for it.
"""
