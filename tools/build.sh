#!/bin/sh
# Builds everything into $1 with the Python $2 and $3 jobs, LLVM as $4 says, then installs the package into that
# Python's environment. Quiet unless something fails: the log of a failed step is printed whole.
set -eu
build=$1 python=$2 jobs=$3 llvm=$4
mkdir -p "$build"
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")

step() {  # step NAME COMMAND...: runs the command, shows its output only if it fails
  name=$1
  shift
  if ! "$@" > "$build/$name.log" 2>&1; then
    grep -v '^\[[0-9]*/[0-9]*\] [BL]' "$build/$name.log" >&2  # without Ninja's lines of progress
    echo "$name failed; the log is $build/$name.log" >&2
    exit 1
  fi
}

step configure cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$python" -DTN_LLVM="$llvm"
echo "building into $build ($jobs jobs; the first build takes some minutes)"
if [ -t 1 ]; then  # a terminal sees Ninja's one changing line
  ninja -C "$build" -j "$jobs"
else
  step build ninja -C "$build" -j "$jobs"
fi
step install "$python" -m pip install --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
  --config-settings=build-dir="$build" --config-settings=cmake.define.TN_LLVM="$llvm" \
  --config-settings=cmake.define.TN_TESTS=ON .
