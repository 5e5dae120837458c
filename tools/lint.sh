#!/usr/bin/env bash
# All static checks: lint.sh BUILD_DIR_WITH_COMPILE_COMMANDS VENV_BIN
set -euo pipefail
build=$1
bin=$2

echo "layers"
"$bin"/python tools/check_layers.py

echo "clang-format"
git ls-files '*.h' '*.cpp' '*.inl' | xargs clang-format --dry-run --Werror

echo "ascii"
# The result is what grep finds, not its status: that of several calls of grep says nothing.
foreign=$(git ls-files 'include/*' 'src/*' 'python/*.py' 'python/*.pyi' 'kernel/*' 'tests/*.cpp' 'tests/*.h' 'tests/*.py' 'tools/*' \
  | LC_ALL=C xargs grep -nP '[^\x00-\x7F]' || true)
if [ -n "$foreign" ]; then
  echo "$foreign"
  exit 1
fi

echo "ruff"
"$bin/ruff" check --quiet .
"$bin/ruff" format --check --quiet python tests tools benchmarks notebooks

echo "mypy"
"$bin/mypy" --no-error-summary

# A test that imports a name that is gone is found here, not at the end of a run of all tests.
echo "tests"
"$bin/python" -m pytest --collect-only -qq >/dev/null || "$bin/python" -m pytest --collect-only -q | grep -A 20 "= ERRORS"

# The static analyzer takes most of the time, and most of that in a few long functions: of a function it explores a
# third of the states that clang's default allows. TIDY=--all: all files, and all states.
depth=()
[ "${TIDY:-}" = --all ] ||
  depth=(--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=75000)
files=$(python3 tools/tidy_files.py ${TIDY:-})
echo "clang-tidy: $(wc -l <<<"$files") files"
# Findings are on standard output; on the other are counts of warnings, and what clang-tidy says when it crashes.
messages=$(mktemp)
trap 'rm -f "$messages"' EXIT
xargs -P "$(nproc)" -n 2 clang-tidy -p "$build" "${depth[@]}" --quiet 2>"$messages" <<<"$files" || {
  status=$?
  grep -v 'warnings\? generated' "$messages" >&2 || true
  exit "$status"
}
