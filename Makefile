# make        sets up .venv (once; then notices in an instant that nothing changed)
# make demo   grades a right and a broken flash attention on the simulated GPU
# make test   runs the whole test suite, the notebooks included
# make lab    opens the lessons in JupyterLab
# make format formats Python and CUDA/C++ sources; make notebooks runs every lesson again and keeps its outputs
PYTHON ?= python3
PIP_FLAGS ?=
BIN := .venv/bin
SOURCES := $(shell git ls-files '*.cu' '*.cuh' '*.h' '*.cpp' 2>/dev/null)
DEMO := day06_flash_attention/flash_attention

.PHONY: setup demo test lab format lint notebooks
setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e '.[test]'
	@touch $@

demo: setup
	-$(BIN)/grader check $(DEMO) --file solutions/$(DEMO).cu
	-$(BIN)/grader check day06_flash_attention/flash_no_rescale

test: setup lint
	$(BIN)/python -m pytest tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(SOURCES)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(SOURCES)
	$(BIN)/python -m grader.notebook.canonical lessons/*/lesson.ipynb

notebooks: setup
	$(BIN)/python -m grader.notebook.execute lessons/*/lesson.ipynb

lab: setup
	$(BIN)/jupyter lab lessons
