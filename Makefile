# A fresh checkout needs only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check -q
WORKERS ?= 2
REPS ?= 2000
# Exact versions to install, where wanted: make install CONSTRAINTS=requirements/tested.txt
CONSTRAINTS ?=
PINNED := $(if $(CONSTRAINTS),-c $(CONSTRAINTS))
export NO_MKDOCS_2_WARNING := 1
CODE := src tests benchmarks tools docs/examples

.PHONY: install demo test test-heavy test-minimum coverage check format bench bench-spark simulate docs site lock clean

install: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install $(PINNED) -e '.[dev]'
	touch $@

$(VENV)/.heavy: $(VENV)/.installed
	$(PIP) install torch==2.13.0
	$(PIP) install $(PINNED) -e '.[dev,heavy]'
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium chromium-driver) \
		|| echo "Chromium could not be installed: the tests in a browser will be skipped."
	touch $@

demo: install
	$(BIN)/evenhand demo

test: install
	$(BIN)/pytest -n $(WORKERS)

test-heavy: $(VENV)/.heavy
	$(BIN)/pytest -m heavy -n $(WORKERS) --dist loadgroup

# The lowest versions that pyproject.toml promises, in an environment of their own.
$(VENV)-minimum/.installed: pyproject.toml tools/versions.py
	test -x $(VENV)-minimum/bin/python || $(PYTHON) -m venv $(VENV)-minimum
	$(VENV)-minimum/bin/pip --disable-pip-version-check -q install packaging
	$(VENV)-minimum/bin/python tools/versions.py lowest > $(VENV)-minimum/lowest.txt
	$(VENV)-minimum/bin/pip --disable-pip-version-check -q install -c $(VENV)-minimum/lowest.txt -e '.[test]'
	touch $@

# Pages are made with the tested versions: other ones word a signature or a usage line otherwise.
test-minimum: $(VENV)-minimum/.installed
	$(VENV)-minimum/bin/pytest -n $(WORKERS) --deselect tests/docs/test_reference.py --deselect tests/docs/test_notebooks.py

# The suite with every branch counted: a third to a half more work, so not what `test` does.
coverage: install
	COVERAGE_CORE=ctrace $(BIN)/pytest -n $(WORKERS) --cov --cov-report=term:skip-covered --cov-report=xml

check: install
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/python tools/versions.py check
	$(BIN)/mkdocs build --strict --quiet

format: install
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# Peers need older libraries than ours: they get an environment of their own.
$(VENV)-bench/.installed: pyproject.toml
	test -x $(VENV)-bench/bin/python || $(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip --disable-pip-version-check -q install -e '.[duckdb,text,bench]'
	touch $@

bench: $(VENV)-bench/.installed
	$(VENV)-bench/bin/python benchmarks/run.py

# Spark in local mode on rows that it makes itself, with the plans that ran.
bench-spark: $(VENV)/.heavy
	$(BIN)/python benchmarks/spark.py --rows 100000000

# Coverage and error rates of every claim; their table goes to docs/explanation/how-sure.md. A claim
# that does not hold is marked there, so that the table is written all the same.
simulate: install
	PYTHONPATH=tools $(BIN)/python -m claims --repetitions $(REPS) --processes $(WORKERS)

# What is made from the code: the reference, and the notebooks with what they print.
docs: install
	$(BIN)/python tools/make_reference.py
	$(BIN)/python tools/make_notebooks.py

site: install
	$(BIN)/mkdocs build --strict

lock: install
	$(BIN)/python tools/versions.py lock

clean:
	rm -rf $(VENV) $(VENV)-minimum $(VENV)-bench build dist demo artefacts site
