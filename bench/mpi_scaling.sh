#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Strong and weak scaling over the ranks of a job on this machine, and one large run. Tables for docs/benchmarks/mpi.md.
#
#   script/bench mpi [RANKS [GIB]]     up to RANKS ranks of one thread each (default: one for each processor); the large
#                                      run, d = 10^6, has as many samples as GIB of features hold (default: two thirds of
#                                      the memory that is free), 20,000 at most
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ranks=${1:-$(nproc)}
gib=${2:-$(awk '/MemAvailable/ {printf "%.1f", $2 / 1048576 * 2 / 3}' /proc/meminfo)}

"$here/script/build" bench --target itspace_mpi_scaling
program=$here/build/bench/bench/itspace_mpi_scaling
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
job() { mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$1" "$program" "${@:2}"; }

counts=()
for ((p = 1; p < ranks; p *= 2)); do counts+=("$p"); done
counts+=("$ranks")

lscpu | sed -n 's/^Model name: */processor: /p'
echo "ranks: up to $ranks; $(mpirun --version | head -1); $(g++ --version | head -1)"
echo "commit: $(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)"
series() {
  local title=$1 heading=heading
  shift
  printf '\n%s\n\n' "$title"
  for p in "${counts[@]}"; do
    "$@" "$p" $heading
    heading=
  done
}
strong_rows() { job "$1" rows 20000 20000 16 10 ${2:-}; }
weak_rows() { job "$1" rows $((10000 * $1)) 20000 16 10 ${2:-}; }
strong_columns() { job "$1" columns 2000 200000 16 10 ${2:-}; }
weak_columns() { job "$1" columns 2000 $((100000 * $1)) 16 10 ${2:-}; }
series "Strong scaling, rows of the features spread" strong_rows
series "Weak scaling, rows of the features spread" weak_rows
series "Strong scaling, columns of the features and rows of Y spread" strong_columns
series "Weak scaling, columns of the features and rows of Y spread" weak_columns

samples=$(awk -v g="$gib" 'BEGIN {n = int(g * 1073741824 / 4e6); print n > 20000 ? 20000 : n}')
printf '\nThe large run: d = 10^6, n = %s (%s GiB of features allowed)\n\n' "$samples" "$gib"
job "$ranks" rows "$samples" 1000000 16 3 heading
job "$ranks" columns "$samples" 1000000 16 3
