#!/usr/bin/env bash
# The tests of the plain-load build, under Miri where that component is installed.
#
# First natively: what Miri is given must pass without it. Then under Miri, which sees undefined
# behaviour that no test run sees. Miri knows no inline assembly and no signals, so every read is a
# plain load there (`cfg(miri)`), and what needs child processes, files or text in memory is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

# Test programs of `immediate-tests` that run under Miri: no processes, no files, no signals.
programs=(value_types macro_contexts_generics macro_contexts_control_flow macro_contexts_paths
  macro_contexts_lints)
# Run natively only.
native_only=(value_introspection)

list=()
for program in "${programs[@]}" "${native_only[@]}"; do
  [ -f "tests/tests/$program.rs" ] || { echo "miri.sh: tests/tests/$program.rs is missing" >&2; exit 1; }
done
for program in "${programs[@]}"; do list+=(--test "$program"); done

echo "plain loads, natively: immediate (unit tests), ${programs[*]} ${native_only[*]}"
flags="${RUSTFLAGS:-} --cfg immediate_no_patching"
target="${CARGO_TARGET_DIR:-$PWD/target}/plain"
CARGO_TARGET_DIR="$target" RUSTFLAGS="$flags" cargo test -q -p immediate --lib
CARGO_TARGET_DIR="$target" RUSTFLAGS="$flags" \
  cargo test -q -p immediate-tests "${list[@]}" --test "${native_only[@]}"

# `cargo miri --version` fails where the component is missing, also under a toolchain that is named.
toolchain=()
if cargo miri --version >/dev/null 2>&1; then
  :
elif command -v rustup >/dev/null && cargo +nightly miri --version >/dev/null 2>&1; then
  toolchain=(+nightly)
else
  echo "Miri: not installed, so not run (rustup +nightly component add miri)"
  exit 0
fi

echo "Miri: immediate (unit tests), ${programs[*]}"
# Addresses are exposed on purpose: a pointer is a number in an instruction.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-permissive-provenance"
cargo "${toolchain[@]}" miri test -q -p immediate --lib
cargo "${toolchain[@]}" miri test -q -p immediate-tests "${list[@]}"
