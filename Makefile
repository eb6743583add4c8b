# make        sets up .venv (once; then notices in an instant that nothing changed)
# make demo   grades a right and a broken flash attention on the simulated GPU
# make test   runs the whole test suite, the notebooks included
# make lab    opens the lessons in JupyterLab
# make format formats Python and CUDA/C++ sources; make notebooks runs every lesson again and keeps its outputs
# The first Python on the PATH that is 3.11 or 3.12 and can make a virtual environment; or say make PYTHON=...
PYTHON ?= $(shell for python in python3 python3.12 python3.11; do \
	$$python -c 'import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && echo $$python && break; done)
PIP_FLAGS ?=
BIN := .venv/bin
SOURCES = $(shell find grader lessons exercises solutions tests -name '*.cu' -o -name '*.cuh' -o -name '*.h' -o -name '*.cpp')
DEMO := day06_flash_attention/flash_attention
BROKEN := day06_flash_attention/flash_no_rescale

.PHONY: setup demo test lab format lint notebooks
setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or 3.12 with venv found (Debian, Ubuntu: apt install python3-venv)"; exit 2; }
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || { echo "make: no C++ compiler found (Debian, Ubuntu: apt install g++)"; exit 2; }
	@echo "Setting up .venv; this downloads the packages once."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e '.[test]'
	$(BIN)/python -m grader.cli.install
	@touch $@

demo: setup
	@echo "A right flash attention, the course's solution:"
	@$(BIN)/grader check $(DEMO) --file solutions/$(DEMO).cu
	@echo "A broken one, an exercise: its running sum is not rescaled. Find out where!"
	@$(BIN)/grader check $(BROKEN); test $$? -eq 1

test: setup lint
	$(BIN)/python -m pytest tests -n auto

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	@echo "clang-format --dry-run --Werror over every .cu, .cuh, .h and .cpp"
	@$(BIN)/clang-format --dry-run --Werror $(SOURCES)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(SOURCES)
	$(BIN)/python -m grader.notebook.canonical lessons/*/lesson.ipynb

notebooks: setup
	$(BIN)/python -m grader.notebook.execute lessons/*/lesson.ipynb

lab: setup
	$(BIN)/jupyter lab lessons
