"""``python -m grader.setup``: the installation of the course's packages into `.venv`, as `make` runs it.

It runs before anything is installed, so it uses only Python's standard library.

- ``state`` describes the contents of .venv, and whether they match the course.
- ``set_up`` makes the steps from an empty folder to a complete environment.
- ``installer`` runs pip and uv, and tracks their progress.
- ``torch`` finds the build of torch that pip would choose, and its size.
- ``relocation`` corrects the programs of a .venv that was moved.
- ``failures`` knows the reasons why pip or uv failed, and the remedies.
- ``packages`` says what to install if a program of the course lacks a package.
- ``display`` shows one live line on a terminal, and a few permanent lines in a log.
"""
