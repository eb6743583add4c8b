"""Grading a class: ``grader grade FOLDER --out DIR``.

- ``submissions.py`` finds the students' folders and archives, and rejects forbidden contents of archives.
- ``class_archive.py`` unpacks a downloaded archive of the whole class. ``archives.py`` checks names in archives.
- ``instructor.py`` reads the instructor's file: the seed, the exercises and hidden cases.
- ``policy.py`` reads this file's tables of points: partial points, lateness, extra points.
- ``session.py`` grades a class. It keeps the results of finished students, starts the jobs of all other students, and
  writes the output. It can be interrupted at any time.
- ``jobs.py`` defines a job: one exercise of one student, identified by everything that determines its verdict.
- ``executor.py`` is the interface of executors. ``local.py`` uses the processes of this machine, and ``forked.py``
  loads the libraries that they share. ``cluster.py`` uses the nodes of a Ray cluster, ``course_package.py`` packs the
  files for them, and ``attempts.py`` chooses the nodes.
- ``worker.py`` grades one job, in a separate process.
- ``on_gpu.py`` combines the verdicts of the simulator and of a GPU.
- ``store.py`` stores the result of each job. ``status.py`` shows the progress of a run.
- ``result.py`` holds the results of one student. ``records.py`` writes the files for each student.
- ``incidents.py`` handles internal errors of the grader: a message with a reference, and a log for the instructor.
- ``tables.py`` writes grades.csv and similar.csv. ``csv_files.py`` reads and writes CSV, and ``cells.py`` makes text
  that students chose safe in a spreadsheet.
- ``similar.py`` finds nearly identical submissions.
- ``gradebook.py`` writes grades.json, with every student's grades.
- ``stored.py`` reads a student's stored results and files.
- ``pages.py`` writes the pages of the class and of each student, with ``mistakes.py`` and ``leaderboard.py``.
- ``exports/`` is for Gradescope, GitHub, Moodle and Canvas.
"""
