"""Checks and templates for the authors of days and exercises.

================== ================================================================== mistakes the wrong kernels of an
exercise, which its tests must catch exercise_rules CONTRIBUTING's rules for an exercise, without those that run kernels
day_rules CONTRIBUTING's rules for a day new templates of the files of a new day or exercise writing writes several
files at once: all of them, or none ==================
==================================================================
"""
