#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing: install_packages.sh GROUP...  (build, demo, test, lint, emulated, portable, windows, wine, maven)
set -euo pipefail

declare -A groups=(
  [build]="build-essential cmake ninja-build pkg-config python3-dev python3-venv libzydis-dev libelf-dev libdw-dev liblzma-dev libzstd-dev nlohmann-json3-dev libipt-dev"
  [demo]="qemu-user"
  [test]="libgtest-dev nasm qemu-user luajit"
  [lint]="git clang clang-format clang-tidy"
  [emulated]="qemu-system-x86"
  [portable]="googletest g++-aarch64-linux-gnu qemu-user g++-mingw-w64-x86-64-posix wine wine64"
  [windows]="python3 cmake ninja-build xz-utils gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64 nlohmann-json3-dev"
  [wine]="clang wine wine64"
  [maven]="maven"
)
# Wanted, but not had everywhere: what needs them is skipped without (ccache saves time).
declare -A optional=([build]="ccache llvm-dev" [test]="gcc-multilib linux-perf llvm lld clang dwz libdebuginfod1 valgrind autofdo gcc-11 bolt-19 chromium" [lint]="libclang-rt-dev" [wine]="libclang-rt-dev")

is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

required=() wanted=()
for group in "$@"; do
  for name in ${groups[$group]}; do is_installed "$name" || required+=("$name"); done
  for name in ${optional[$group]:-}; do is_installed "$name" || wanted+=("$name"); done
done 2>/dev/null
[ ${#required[@]} -eq 0 ] && [ ${#wanted[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "This is neither Debian nor Ubuntu. Install the equivalents of: ${required[*]}" >&2
  exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages; as root run: apt-get install ${required[*]} ${wanted[*]}" >&2
    exit 1
  fi
  run=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq
if [ ${#required[@]} -gt 0 ]; then
  echo "installing: ${required[*]}"
  "${run[@]}" apt-get install -y -qq --no-install-recommends "${required[@]}" >/dev/null
fi
for name in "${wanted[@]}"; do
  "${run[@]}" apt-get install -y -qq --no-install-recommends "$name" >/dev/null 2>&1 ||
    echo "not available here, what needs it will be skipped: $name"
done
