# The commands of ptkit. On a fresh Debian or Ubuntu machine `make demo` and `make test` install what they need.
PYTHON ?= python3
VENV := .venv
BUILD := build
JOBS ?= $(shell nproc)
EMULATED_SECONDS ?= $(if $(FULL),14400,$(if $(COMMIT),2700,7200))
STAMPS := $(BUILD)/.stamps
# The package is built here and, for a wheel, in a copy: ccache then compiles once. So it does for other checkouts, too,
# as it does not ask which folder debug information names.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

# Prerequisites of a rebuild of the Python package.
SOURCES := $(shell find src ptmodel python kernel cmake -type f ! -name '*.so' ! -path '*/__pycache__/*' 2>/dev/null) CMakeLists.txt pyproject.toml tools/layout.toml
# Looked up when a recipe runs: the packages that it needs are installed then.
GENERATOR = $(shell command -v ninja >/dev/null 2>&1 && echo Ninja || echo "Unix Makefiles")

.PHONY: help packages build demo tests readers check test test-cpp test-python emulated portable windows windows-test windows-client windows-python wheel lint format sanitize bench docs clean

help:
	@echo "make demo      record a real program, print its hottest functions, open a page of the whole run"
	@echo "make build     .venv/ with ptkit and its extras"
	@echo "make check     C++ and golden tests, after a change: within a minute"
	@echo "make test      every test (C++ and Python)"
	@echo "make readers   build/readers: programs of others that read exports in tests (PyPI, npm)"
	@echo "make emulated  Linux' driver and ours in emulated machines (Debian; builds them first); FULL=1: hours more"
	@echo "make portable  packets, flow, time and tables on aarch64 and on Windows, in emulators (Debian)"
	@echo "make windows   the driver for Windows, with Debian's mingw-w64: build/windows/ptkit.sys"
	@echo "make windows-test  that driver in Wine and under sanitizers, over a model of the processors"
	@echo "make windows-client  the recorder for Windows: build/windows-client/ptkit-capture.exe"
	@echo "make windows-python  the Python package for CPython 3.11 of Windows: build/windows-python/wheel"
	@echo "make lint      clang-format, clang-tidy, ruff, mypy, layers, imports of tests"
	@echo "make sanitize  C++ tests and short fuzzing under ASan and UBSan"
	@echo "make wheel     dist/: source archive and a wheel that needs no libraries, tested in an environment of its own"
	@echo "make bench     ours against libipt, result checked first"
	@echo "make docs      the API reference in build/docs"
	@echo "make format    rewrite the sources in the house's format"

# --- what is needed -------------------------------------------------------------------------------------------------
packages: $(STAMPS)/packages-build

# A group of packages.
$(STAMPS)/packages-%: tools/install_packages.sh
	@mkdir -p $(STAMPS)
	bash tools/install_packages.sh $*
	@touch $@

$(STAMPS)/venv: $(STAMPS)/packages-build pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip
	$(VENV)/bin/pip install --quiet "scikit-build-core>=0.11" "pybind11>=3.0"
	@touch $@

# A group of pyproject.toml: what tests or linters need, and users do not.
$(STAMPS)/group-%: $(STAMPS)/venv
	$(VENV)/bin/pip install --quiet --group $*
	@touch $@

# Skipped tests are printed by reason, at the end (tools/report_skips.py).
PYTEST := $(VENV)/bin/python -m pytest -q -rfE

# One tree has the package and, when they are wanted, its tests: the core is compiled once.
TREE := PTKIT_WERROR=ON PTKIT_UNITY=ON PTKIT_PCH=ON

# --- build ----------------------------------------------------------------------------------------------------------
build: $(STAMPS)/build
$(STAMPS)/build: $(STAMPS)/venv $(SOURCES)
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(VENV)/bin/pip install --quiet --no-build-isolation \
	  -C build-dir=$(BUILD)/test $(addprefix -C cmake.define.,$(TREE)) ".[all]"
	@touch $@

# The C++ tests, and what those of Python import.
tests: $(STAMPS)/tests
	cmake --build $(BUILD)/test -j $(JOBS)
$(STAMPS)/tests: $(STAMPS)/build $(STAMPS)/packages-test $(STAMPS)/group-test
	cmake -S . -B $(BUILD)/test -DPTKIT_TESTS=ON >/dev/null
	@touch $@

# WHEEL_PYTHONS="python3.10 python3.12": a wheel for each.
wheel: $(STAMPS)/packages-build
	bash tools/make_wheel.sh dist $${WHEEL_PYTHONS:-$(PYTHON)}

demo: $(STAMPS)/packages-demo build
	$(VENV)/bin/ptkit demo -o $(BUILD)/demo

# Programs that read exports, in an environment of their own: what cannot be had is skipped.
readers: $(STAMPS)/readers
$(STAMPS)/readers: $(STAMPS)/packages-build tools/install_readers.sh
	@mkdir -p $(STAMPS)
	PYTHON=$(PYTHON) bash tools/install_readers.sh $(BUILD)/readers
	@touch $@

# --- tests ----------------------------------------------------------------------------------------------------------
# Ends with all skips by reason, and fails if one is not in tests/expected_skips.txt.
test: test-cpp test-python
	$(PYTHON) tools/report_skips.py test $(BUILD)/test/gtest/*.xml $(BUILD)/test/pytest.xml

# After a change of the core or its tests: without the package, and without recordings.
check: $(if $(wildcard $(STAMPS)/tests),,tests)
	cmake --build $(BUILD)/test -j $(JOBS)
	ctest --test-dir $(BUILD)/test -j $(JOBS) --output-on-failure -LE test_capture
	PTKIT_BUILD=$(BUILD)/test $(PYTEST) -n $(JOBS) tests/golden/test_golden.py

test-cpp: tests
	rm -rf $(BUILD)/test/gtest
	ctest --test-dir $(BUILD)/test -j $(JOBS) --output-on-failure

test-python: tests $(STAMPS)/readers
	PTKIT_BUILD=$(BUILD)/test $(PYTEST) -n $(JOBS) --junit-xml=$(BUILD)/test/pytest.xml

# Two machines at a time, of a gigabyte each (2.5 for the driver's model). The first run downloads and builds for some minutes.
# FULL=1 adds what takes an hour and more: the walk over all sequences of requests, ten minutes of random requests.
# COMMIT=HEAD: the quick set and a twelfth of the others, which the commit's hash chooses (tests/support/machines/emulated_sets.py),
# as far as they begin within 20 minutes; the others are printed as skipped.
emulated: tests $(STAMPS)/packages-emulated
	PTKIT_EMULATED=1 $(if $(FULL),PTKIT_WALK=1 PTKIT_FUZZ_SECONDS=600) \
	  $(if $(COMMIT),PTKIT_EMULATED_COMMIT=$$(git rev-parse $(COMMIT)) PTKIT_EMULATED_SECONDS=1200) timeout $(EMULATED_SECONDS) \
	  $(PYTEST) -n 2 --dist loadfile --durations=10 --junit-xml=$(BUILD)/emulated.xml \
	  tests/machines/emulated tests/machines/linux_driver
	$(PYTHON) tools/report_skips.py emulated $(BUILD)/emulated.xml

# TARGETS=aarch64: one of the systems.
TARGETS ?= aarch64 windows
portable: tests $(STAMPS)/packages-portable
	JOBS=$(JOBS) $(PYTHON) tests/machines/portable/portable_part.py $(BUILD)/test $(BUILD)/portable $(TARGETS)

windows: $(STAMPS)/packages-windows
	cmake -S kernel/windows -B $(BUILD)/windows -G "$(GENERATOR)" --toolchain $(CURDIR)/cmake/mingw.cmake >/dev/null
	cmake --build $(BUILD)/windows -j $(JOBS)

# The driver in Wine, and natively under sanitizers. The recorder is built before: a test has a limit of time.
windows-test: tests windows-client $(STAMPS)/packages-wine
	PTKIT_WINDOWS=1 PTKIT_BUILD=$(BUILD)/test $(PYTEST) -n 2 --dist loadfile --durations=5 \
	  --junit-xml=$(BUILD)/windows.xml tests/machines/windows
	$(PYTHON) tools/report_skips.py test $(BUILD)/windows.xml

windows-client: $(STAMPS)/packages-windows
	JOBS=$(JOBS) $(PYTHON) tests/support/windows/windows_client.py $(BUILD)/windows-client

# Tests in tests/machines/windows/python. CPython for Windows: PTKIT_WINDOWS_PYTHON=FOLDER, or by Maven.
windows-python: build $(addprefix $(STAMPS)/packages-,windows portable $(if $(PTKIT_WINDOWS_PYTHON),,maven))
	JOBS=$(JOBS) $(VENV)/bin/python tests/support/windows/windows_python.py $(BUILD)/windows-python

# Sanitizers report lines; all of the debug information would take a fifth of the time to compile.
LINES := -O2 -gline-tables-only -DNDEBUG
# COMMIT=HEAD: the tests and fuzz targets that the commit touches, and a sixth of all in turn (tools/sanitized_tests.py).
sanitize: $(addprefix $(STAMPS)/packages-,build test lint)
	tests=$(if $(COMMIT),$$($(PYTHON) tools/sanitized_tests.py $(COMMIT))) && \
	cmake -S . -B $(BUILD)/sanitize -G "$(GENERATOR)" -DPTKIT_TESTS=ON -DPTKIT_FUZZ=ON "-DPTKIT_TEST_FILES=$$tests" \
	  -DPTKIT_SANITIZE=address,undefined -DPTKIT_UNITY=ON -DPTKIT_PCH=ON -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang \
	  -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=$(LINES)" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=$(LINES)" \
	  >/dev/null
	cmake --build $(BUILD)/sanitize -j $(JOBS)
	ASAN_OPTIONS=allocator_may_return_null=1 ctest --test-dir $(BUILD)/sanitize -j $(JOBS) --output-on-failure
	bash tools/fuzz.sh $(BUILD)/sanitize $${FUZZ_SECONDS:-15} $(JOBS)

# The core is compiled as for `make build`, so that a compiler cache has it.
bench: build
	cmake -S . -B $(BUILD)/bench -G "$(GENERATOR)" -DPTKIT_BENCHMARKS=ON -DPTKIT_UNITY=ON -DPTKIT_WERROR=ON >/dev/null
	cmake --build $(BUILD)/bench -j $(JOBS)
	$(VENV)/bin/python benchmarks/run.py --build $(BUILD)/bench

docs: build
	$(VENV)/bin/pip install --quiet "pdoc>=14"
	$(VENV)/bin/pdoc -d numpy -o $(BUILD)/docs ptkit ptkit.capture ptkit.decode ptkit.analysis.verify

# --- lint -----------------------------------------------------------------------------------------------------------
# Files are checked one by one: the tree is configured, not built.
lint: $(addprefix $(STAMPS)/packages-,lint test) build $(STAMPS)/group-lint $(STAMPS)/group-test
	cmake -S . -B $(BUILD)/lint -G "$(GENERATOR)" -DPTKIT_TESTS=ON >/dev/null
	TIDY=$(TIDY) bash tools/lint.sh $(BUILD)/lint $(VENV)/bin

format: $(STAMPS)/packages-lint $(STAMPS)/group-lint
	git ls-files '*.h' '*.cpp' '*.inl' | xargs clang-format -i
	$(VENV)/bin/ruff format python tests tools benchmarks notebooks
	$(VENV)/bin/ruff check --fix python tests tools benchmarks notebooks

clean:
	rm -rf $(BUILD) $(VENV) dist
