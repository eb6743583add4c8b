"""Run the ``grader`` command for ``python -m grader``."""

from grader.cli import main

if __name__ == "__main__":
    main()
