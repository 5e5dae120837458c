#!/usr/bin/env bash
# All static checks: lint.sh BUILD_DIR_WITH_COMPILE_COMMANDS VENV_BIN
set -euo pipefail
build=$1
bin=$2

echo "layers";       python3 tools/check_layers.py
echo "clang-format"; git ls-files '*.h' '*.cpp' '*.inl' | xargs clang-format --dry-run --Werror
echo "ascii";        if git ls-files 'src/*' 'python/*.py' 'kernel/*' 'tests/*.cpp' 'tests/*.py' 'tools/*' | xargs grep -nP '[^\x00-\x7F]'; then exit 1; fi
echo "ruff";         "$bin/ruff" check --quiet . && "$bin/ruff" format --check --quiet python tests tools benchmarks
echo "mypy";         "$bin/mypy" --no-error-summary
echo "clang-tidy"
# pybind11's headers are not part of the test build, so bindings are checked by the compiler only.
git ls-files 'src/*.cpp' | grep -v -e '^src/bindings/' | xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet 2>/dev/null
