# make        sets up .venv (once; then notices in an instant that nothing changed)
# make demo   grades a right and a broken flash attention on the simulated GPU
# make test   runs the whole test suite, the notebooks included
# make lab    opens the lessons in JupyterLab
# make book   makes build/book/html, a static site of the lessons and the exercises (installs the extra `book` first)
# make cluster installs Ray (the extra `cluster`), for `grader grade --cluster`
# make browser installs Playwright (the extra `browser`), for the tests in a browser that the machine has
# make format formats Python and CUDA/C++ sources; make notebooks runs every lesson again and keeps its outputs
#
# PYTHON=python3.12   the Python to use, in place of .venv's or the first on the PATH that is 3.11 to 3.14 and has venv
# TORCH=cpu           the build of torch to install (or cu126, ...: uv's names), in place of the one that pip chooses
# PIP_FLAGS=...       more options for pip
PYTHON ?= $(shell for python in .venv/bin/python python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -ESs -c 'import sys; from importlib.util import find_spec; \
	sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 14) and find_spec("ensurepip")))' 2>/dev/null && echo $$python && break; done)
TORCH :=
PIP_FLAGS ?=
BIN := .venv/bin
SOURCES = $(shell find grader lessons exercises solutions tests -name '*.cu' -o -name '*.cuh' -o -name '*.h' -o -name '*.cpp')

.PHONY: setup demo test lab book browser cluster format lint notebooks
setup:
	@python="$(PYTHON)"; \
	test -n "$$python" || { echo "make: no Python 3.11 to 3.14 with venv found (Debian, Ubuntu: apt install python3-venv)"; exit 2; }; \
	exec "$$python" -ESs -m grader.setup $(if $(filter-out file,$(origin PYTHON)),--this-python) --torch="$(TORCH)" -- $(PIP_FLAGS)

demo: setup
	@$(BIN)/grader demo

test: setup lint
	$(BIN)/python -m pytest -p tests.no_grammars tests -n auto --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell *.md .ci .devcontainer grader lessons exercises solutions tests
	$(BIN)/lint-imports
	$(BIN)/mypy
	@echo "clang-format --dry-run --Werror over every .cu, .cuh, .h and .cpp"
	@$(BIN)/clang-format --dry-run --Werror $(SOURCES)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(SOURCES)
	$(BIN)/python -m grader.report.notebook.canonical lessons/*/lesson.ipynb

notebooks: setup
	$(BIN)/python -m grader.report.notebook.execute lessons/*/lesson.ipynb

lab: setup
	@home="$$HOME"; test -w "$$home" || { home="$(CURDIR)/.venv/home"; mkdir -p "$$home"; \
	echo "make: your home folder cannot be written, so JupyterLab keeps its own files in .venv/home"; }; \
	HOME="$$home" $(BIN)/jupyter lab lessons $(if $(filter 0,$(shell id -u)),--allow-root)

book: setup
	@$(BIN)/python -c 'from grader.report.book.site import missing; raise SystemExit(bool(missing()))' || { \
	echo "Installing what the book is made with. All that pip prints goes to .venv/install.log."; \
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation $(PIP_FLAGS) -e '.[book]' >>.venv/install.log 2>&1 || \
	{ tail -n 3 .venv/install.log; echo "make: that did not work; .venv/install.log has the whole of it"; exit 2; }; }
	@$(BIN)/python -m grader.report.book

browser: setup
	@$(BIN)/python -c 'import playwright, axe_playwright_python' 2>/dev/null || { \
	echo "Installing Playwright. All that pip prints goes to .venv/install.log."; \
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation $(PIP_FLAGS) -e '.[browser]' >>.venv/install.log 2>&1 || \
	{ tail -n 3 .venv/install.log; echo "make: that did not work; .venv/install.log has the whole of it"; exit 2; }; }

cluster: setup
	@$(BIN)/python -c 'import ray' 2>/dev/null || { \
	echo "Installing Ray. All that pip prints goes to .venv/install.log."; \
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation $(PIP_FLAGS) -e '.[cluster]' >>.venv/install.log 2>&1 || \
	{ tail -n 3 .venv/install.log; echo "make: that did not work; .venv/install.log has the whole of it"; exit 2; }; }
