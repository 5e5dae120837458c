#!/usr/bin/env bash
# Runs every fuzz target for a while from its seed corpus: fuzz.sh BUILD_DIR SECONDS
set -euo pipefail
build=$1
seconds=$2
for target in "$build"/tests/fuzz/fuzz_*; do
  [ -x "$target" ] && [ -f "$target" ] || continue
  name=$(basename "$target")
  corpus=$build/corpus/$name
  mkdir -p "$corpus"
  seeds=$(dirname "$0")/../tests/fuzz/seeds/$name
  [ -d "$seeds" ] || seeds=
  if ! "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -verbosity=0 -print_final_stats=0 \
      -artifact_prefix="$build/$name-" "$corpus" ${seeds:+"$seeds"} >"$build/$name.log" 2>&1; then
    tail -40 "$build/$name.log"
    echo "$name failed: see $build/$name.log"
    exit 1
  fi
  echo "$name: $seconds s without a finding"
done
