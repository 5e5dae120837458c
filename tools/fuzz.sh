#!/usr/bin/env bash
# Runs each fuzz target of the build for a while from its seed corpus, JOBS at a time: fuzz.sh BUILD_DIR SECONDS [JOBS]
set -euo pipefail
export BUILD=$1 SECONDS_EACH=$2 SEEDS=$(dirname "$0")/../tests/fuzz/seeds

fuzz() {
  name=$1
  corpus=$BUILD/corpus/$name
  mkdir -p "$corpus"
  seeds=$SEEDS/$name
  [ -d "$seeds" ] || seeds=
  if ! "$BUILD/tests/fuzz/$name" -max_total_time="$SECONDS_EACH" -timeout=20 -rss_limit_mb=4096 \
      -verbosity=0 -print_final_stats=0 -artifact_prefix="$BUILD/$name-" "$corpus" ${seeds:+"$seeds"} >"$BUILD/$name.log" 2>&1; then
    tail -40 "$BUILD/$name.log"
    echo "$name failed: see $BUILD/$name.log"
    return 255  # xargs begins no other target
  fi
  echo "$name: $SECONDS_EACH s without a finding"
}
export -f fuzz

xargs -r -n 1 -P "${3:-1}" bash -euo pipefail -c 'fuzz "$0"' <"$BUILD/tests/fuzz/targets.txt"
