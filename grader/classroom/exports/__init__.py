"""Results for the systems that schools use: ``grader export``.

moodle.py       the grading worksheet filled in, and feedback files to upload in bulk
canvas.py       a gradebook file, and feedback files to upload in bulk
gradescope.py   the archive of an autograder; gradescope_run.py is what runs inside it
github.py       a workflow for GitHub Actions and GitHub Classroom

What they look like is what their makers document or do; each file says where that stands.
"""
