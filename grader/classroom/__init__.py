"""Grading a class: ``grader grade FOLDER --out DIR``.

submissions.py   finds the students' folders and archives, and refuses what an archive must not hold
class_archive.py a downloaded archive of all of them; archives.py: what names in archives may be
instructor.py    the instructor's file: seed, exercises, hidden cases
policy.py        the rest of it: partial points, lateness, extra points
session.py       who is graded already, the workers, and the order of things; survives being killed
worker.py        grades one student, in a process of its own
records.py       what is written for each student
incidents.py     faults of the grader itself: a student's error, a reference, and a log for the instructor
tables.py        grades.csv and similar.csv, safe to open in a spreadsheet
similar.py       which submissions are nearly the same
gradebook.py     grades.json: what every student gets
stored.py        one student's results and files, read again
pages.py         the pages of the class and of each student, with mistakes.py and leaderboard.py
exports/         for Gradescope, GitHub, Moodle and Canvas
"""
