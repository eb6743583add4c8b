"""``python -m grader.setup``: the installation of the course's packages into `.venv`, as `make` runs it.

It runs before anything is installed, so it uses only Python's standard library.

========== ==========================================================
state      the contents of .venv, and whether they match the course
set_up     the steps from an empty folder to a complete environment
installer  runs pip and uv, and tracks their progress
torch      the build of torch that pip would choose, and its size
relocation programs of a .venv that was moved
failures   the reasons why pip or uv failed, and the remedies
display    one live line on a terminal, a few permanent lines in a log
========== ==========================================================
"""
