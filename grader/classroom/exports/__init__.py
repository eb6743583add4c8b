"""Results for learning systems: ``grader export``.

moodle.py       the grading worksheet filled in, and feedback files to upload in bulk
canvas.py       a gradebook file, and feedback files to upload in bulk
gradescope.py   the archive of an autograder; gradescope_run.py runs inside it
github.py       a workflow for GitHub Actions and GitHub Classroom

The formats follow the documentation or the source of each system; each file names its reference.
"""
