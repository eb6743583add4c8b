"""The drawings of lessons that no measurement fills: where things lie, who owns what, which way the data goes.

Each module holds the drawings of one subject and each function draws one figure, so that a lesson shows a picture by
one line.
"""
