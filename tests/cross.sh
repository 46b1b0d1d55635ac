#!/usr/bin/env bash
# Builds and runs the test programs for other targets: `tests/cross.sh TARGET…`, or all of them.
#
# What is missing is installed: a cross linker, an emulator, and the target's standard library. That
# comes from rustup or, where rustup cannot fetch it, is built from Debian's copy of the source with
# Debian's compiler of the same version, unpacked below the target folder and not installed.
#
# i686 runs natively, through the 32-bit loader; PowerPC under qemu-user. An emulator proves encodings
# and protocols, not the coherence of caches.
#
# One line a program. Fails if one fails, or if something cannot be installed.
# IMMEDIATE_CROSS_STD=debian takes the second way at once.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(i686 powerpc64le powerpc64 powerpc)
[ $# -gt 0 ] || set -- "${all[@]}"
for target in "$@"; do
  [[ " ${all[*]} " == *" $target "* ]] || { echo "cross.sh: $target is none of ${all[*]}" >&2; exit 2; }
done

# What proves a target: every guarantee, every type, the places where macros stand, signals, fork.
everywhere=(value_types value_introspection macro_contexts_generics macro_contexts_control_flow
  macro_contexts_paths guarantee_1_no_mixture guarantee_2_instant guarantee_2_quadword
  guarantee_3_publication guarantee_4_all_or_nothing guarantee_5_signals
  guarantee_6_pays_nothing case_1_two_setters_share_a_page case_8_late_trap
  case_11_own_trap_handler case_20_spin_on_a_site case_fork_child_reads_and_sets)
# What depends on how the kernel treats a thread, which an emulator does not show.
native_only=(case_10_thread_blocks_signals case_14_handler_allocates_nothing
  case_9_signal_interrupts_the_only_thread case_handler_masks_everything
  case_threads_come_and_go fault_injection)

export IMMEDIATE_TORTURE_SECONDS="${IMMEDIATE_TORTURE_SECONDS:-3}"
folder="${CARGO_TARGET_DIR:-$PWD/target}"
debian="$folder/cross/debian"

refuse() { echo "cross.sh: $*" >&2; exit 1; }

install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || refuse "${missing[*]} needed, and there is no apt-get"
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  [ "$(id -u)" = 0 ] || get=(sudo "${get[@]}")
  { "${get[@]}" update && "${get[@]}" install -y --no-install-recommends "${missing[@]}"; } \
    >"$folder/cross/install.log" 2>&1 ||
    refuse "could not install ${missing[*]}: $(tail -n 1 "$folder/cross/install.log")"
}

# Debian's compiler with the source of its standard library.
unpack_debian() {
  [ ! -e "$debian/complete" ] || return 0
  local llvm library
  library="$(apt-cache depends libstd-rust-web-dev 2>/dev/null | sed -n 's/.*Depends: \(libstd-rust-web-[0-9].*\)/\1/p')"
  [ -n "$library" ] || refuse "no standard library: rustup fetches none and there is no package rustc-web"
  llvm="$(apt-cache depends "$library" | sed -n 's/.*Depends: \(libllvm[0-9]*\).*/\1/p' | head -n 1)"
  install "$llvm"
  rm -rf "$debian"
  mkdir -p "$debian"
  (cd "$debian" && apt-get download -qq rustc-web rust-web-src libstd-rust-web-dev "$library") \
    2>"$folder/cross/download.log" ||
    refuse "could not download rustc-web: $(tail -n 1 "$folder/cross/download.log")"
  for package in "$debian"/*.deb; do dpkg -x "$package" "$debian"; done
  rm "$debian"/*.deb
  touch "$debian/complete"
}

# Sets `cargo`, `options` and `output` to what builds for the target, and where.
choose_cargo() {
  local triple=$1
  options=(--target "$triple")
  if [ "${IMMEDIATE_CROSS_STD:-}" != debian ]; then
    cargo=(cargo) output=$folder
    [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] || return 0
    ! rustup target add "$triple" >"$folder/cross/rustup.log" 2>&1 || return 0
  fi
  unpack_debian
  local source
  source="$(echo "$debian"/usr/src/rustc-*/library)"
  cargo=(env RUSTC="$debian/usr/bin/rustc" RUSTC_BOOTSTRAP=1
    LD_LIBRARY_PATH="$debian/usr/lib/x86_64-linux-gnu" __CARGO_TESTS_ONLY_SRC_ROOT="$source"
    CARGO_TARGET_DIR="$folder/cross" cargo +nightly)
  options+=(-Zbuild-std=std,panic_unwind,test) output=$folder/cross
}

# Builds and runs the programs of one target.
lane() {
  local target=$1 triple=$1-unknown-linux-gnu gnu=$1-linux-gnu started=$SECONDS
  local emulator='' libc flags='' list=() runner=() programs=("${everywhere[@]}")
  case $target in
    i686)
      libc=i386
      programs+=("${native_only[@]}")
      # The program names the 32-bit loader itself, so that it can run itself again.
      flags="-Clink-arg=-Wl,--dynamic-linker=/usr/$gnu/lib/ld-linux.so.2,-rpath,/usr/$gnu/lib" ;;
    powerpc64le) emulator=qemu-ppc64le libc=ppc64el ;;
    powerpc64) emulator=qemu-ppc64 libc=ppc64 ;;
    powerpc) emulator=qemu-ppc libc=powerpc ;;
  esac
  install "gcc-$gnu" "libc6-dev-$libc-cross" ${emulator:+qemu-user}
  [ -z "$emulator" ] || runner=("$emulator" -L "/usr/$gnu")
  local name=${triple^^}
  export "CARGO_TARGET_${name//-/_}_LINKER=$gnu-gcc" "CARGO_TARGET_${name//-/_}_RUSTFLAGS=$flags"

  choose_cargo "$triple"
  for name in "${programs[@]}"; do list+=(--test "$name"); done
  local log="$folder/cross/$target.log" built="$folder/cross/$target.built"
  "${cargo[@]}" test --no-run "${options[@]}" -p immediate-tests "${list[@]}" >"$built" 2>&1 ||
    { tail -n 60 "$built" >&2; refuse "$target: the test programs do not build"; }
  "${cargo[@]}" build --release "${options[@]}" -p immediate-examples --bin hot_path \
    >"$log" 2>&1 || { tail -n 60 "$log" >&2; refuse "$target: hot_path does not build"; }
  echo "$target: built in $((SECONDS - started)) s"

  local path begun failed=0
  while read -r name path; do
    begun=$SECONDS
    if IMMEDIATE_TEST_RUNNER="${runner[*]}" timeout 240 "${runner[@]}" "$path" >"$log" 2>&1; then
      echo "$target: $name: ok, $((SECONDS - begun)) s, $(grep -c '^test .* ok$' "$log") tests"
    else
      failed=$((failed + 1))
      tail -n 60 "$log" >&2
      echo "$target: $name: FAILED"
    fi
  done < <(sed -n 's|.*Executable tests/\(.*\)\.rs (\(.*\))|\1 \2|p' "$built")
  # The main job checks its own counts; by each protocol.
  path="$output/$triple/release/hot_path"
  for name in int3 quadword stop-world; do
    if IMMEDIATE_PROTOCOL=$name timeout 240 "${runner[@]}" "$path" --seconds 0.5 >"$log" 2>&1; then
      echo "$target: hot_path by $name: ok, its counts are right"
    else
      failed=$((failed + 1))
      tail -n 60 "$log" >&2
      echo "$target: hot_path by $name: FAILED"
    fi
  done
  echo "$target: $((SECONDS - started)) s in all, $failed failed"
  [ "$failed" = 0 ] || failures+=("$target")
}

mkdir -p "$folder/cross"
failures=()
for target in "$@"; do lane "$target"; done
[ ${#failures[@]} = 0 ] || refuse "failed: ${failures[*]}"
