# A fresh checkout needs only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check -q
WORKERS ?= 2

.PHONY: install demo test test-heavy check format bench docs clean

install: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -e '.[dev]'
	touch $@

$(VENV)/.heavy: $(VENV)/.installed
	$(PIP) install torch==2.13.0
	$(PIP) install -e '.[dev,heavy]'
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium chromium-driver) \
		|| echo "Chromium could not be installed: the tests in a browser will be skipped."
	touch $@

demo: install
	$(BIN)/evenhand demo

test: install
	$(BIN)/pytest -n $(WORKERS)

test-heavy: $(VENV)/.heavy
	$(BIN)/pytest -m heavy -p no:xdist

check: install
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix src tests benchmarks tools
	$(BIN)/ruff format src tests benchmarks tools

# Peers need older libraries than ours: they get an environment of their own.
$(VENV)-bench/.installed: pyproject.toml
	test -x $(VENV)-bench/bin/python || $(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip --disable-pip-version-check -q install -e '.[duckdb,text,bench]'
	touch $@

bench: $(VENV)-bench/.installed
	$(VENV)-bench/bin/python benchmarks/run.py

docs: install
	$(BIN)/python tools/make_reference.py

clean:
	rm -rf $(VENV) $(VENV)-bench build dist demo artefacts
