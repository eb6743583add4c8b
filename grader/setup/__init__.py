"""``python -m grader.setup``: what `make` runs to put the course's packages into `.venv`.

It runs before anything is installed, so it needs nothing but Python's own library.

========== ==========================================================
state      what .venv holds, and whether that is what the course wants
set_up     the steps from an empty folder to a complete environment
installer  runs pip and uv, and follows how far they are
torch      which build of torch pip would take, and how large it is
failures   why pip or uv failed, and what to do about it
display    one live line on a terminal, a few lasting lines in a log
========== ==========================================================
"""
