"""Checks and templates for the authors of days and exercises.

- ``mistakes``: the wrong kernels of an exercise, which its tests must catch
- ``mutants``: wrong kernels proposed from a solution
- ``exercise_rules``: CONTRIBUTING's rules for an exercise, except those that run kernels
- ``day_rules``: CONTRIBUTING's rules for a day
- ``lesson_rules``: the length and the questions of a lesson
- ``new``: templates of the files of a new day or exercise; ``from_solution``: the same from a finished solution
"""
