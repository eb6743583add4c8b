"""Grading a class: ``grader grade FOLDER --out DIR``.

submissions.py   finds the students' folders and archives, and refuses what an archive must not hold
class_archive.py a downloaded archive of all of them; archives.py: what names in archives may be
instructor.py    the instructor's file: seed, exercises, hidden cases
policy.py        the rest of it: partial points, lateness, extra points
session.py       who is graded already, the jobs of the others, and what is written; survives being killed
jobs.py          one job: one exercise of one student, named by all that decides its verdict
schedule.py      which job is next: what takes long begins early
executor.py      who does the jobs, one small interface: local.py, the processes of this machine (forked.py: what they
                 have loaded at their start); cluster.py, the nodes of a Ray cluster (course_package.py: what they get)
worker.py        grades one job, in a process of its own
on_gpu.py        the simulator's verdict and a GPU's become one
store.py         what became of each job, kept until and after its student is done; status.py tells how far a run is
records.py       what is written for each student
incidents.py     faults of the grader itself: a student's error, a reference, and a log for the instructor
tables.py        grades.csv and similar.csv, safe to open in a spreadsheet
similar.py       which submissions are nearly the same
gradebook.py     grades.json: what every student gets
stored.py        one student's results and files, read again
pages.py         the pages of the class and of each student, with mistakes.py and leaderboard.py
exports/         for Gradescope, GitHub, Moodle and Canvas
"""
