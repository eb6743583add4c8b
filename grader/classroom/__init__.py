"""Grading a class: ``grader grade FOLDER --out DIR``.

submissions.py   finds the students' folders and archives, and refuses what an archive must not hold
instructor.py    the instructor's file: seed, exercises, hidden cases
session.py       who is graded already, the workers, and the order of things; survives being killed
worker.py        grades one student, in a process of its own
records.py       what is written for each student
incidents.py     faults of the grader itself: a student's error, a reference, and a log for the instructor
tables.py        grades.csv and similar.csv, safe to open in a spreadsheet
similar.py       which submissions are nearly the same
"""
