"""Grading a class: ``grader grade FOLDER --out DIR``.

submissions.py   finds the students' folders and archives, and rejects forbidden contents of archives
class_archive.py a downloaded archive of the whole class; archives.py: allowed names in archives
instructor.py    the instructor's file: seed, exercises, hidden cases
policy.py        its tables of points: partial points, lateness, extra points
session.py       finished students, jobs of the others, and the output; can be interrupted at any time
jobs.py          one job: one exercise of one student, identified by everything that determines its verdict
schedule.py      the order of jobs: long ones start early
executor.py      the interface of executors: local.py, the processes of this machine (forked.py: the libraries that
                 they share); cluster.py, the nodes of a Ray cluster (course_package.py: the files sent to them)
worker.py        grades one job, in a separate process
on_gpu.py        combines the verdicts of the simulator and of a GPU
store.py         the result of each job; status.py shows the progress of a run
records.py       the files written for each student
incidents.py     internal errors of the grader: a message with a reference, and a log for the instructor
tables.py        grades.csv and similar.csv, safe to open in a spreadsheet
similar.py       nearly identical submissions
gradebook.py     grades.json: every student's grades
stored.py        a student's stored results and files
pages.py         the pages of the class and of each student, with mistakes.py and leaderboard.py
exports/         for Gradescope, GitHub, Moodle and Canvas
"""
