"""For the authors of days and exercises: what each still lacks, and how a new one begins.

================== ==================================================================
mistakes           the wrong kernels of an exercise, which its tests must catch
exercise_rules     what CONTRIBUTING asks of an exercise, as far as no kernel need run
day_rules          the same of a day
new                the files that a new day or exercise begins with
writing            several files at once: all of them, or none
================== ==================================================================
"""
