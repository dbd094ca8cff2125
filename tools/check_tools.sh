#!/bin/sh
# Checks what a fresh machine must have before the build: Python >= 3.10 with venv, and gcc >= 12 or clang >= 16.
# Prints nothing when all is well; else one line per missing tool with the package that brings it.
python=${1:-python3}
fail=0

complain() {
  echo "missing: $1" >&2
  echo "         install it with: $2" >&2
  fail=1
}

if ! command -v "$python" > /dev/null 2>&1; then
  complain "Python >= 3.10 ('$python' is not a command; PYTHON=... names another)" "apt-get install python3 python3-venv python3-dev"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  complain "Python >= 3.10 ('$python' says $("$python" -V 2>&1 | head -n 1 | grep . || echo nothing); PYTHON=... names another)" "apt-get install python3 python3-venv python3-dev"
else
  "$python" -c 'import ensurepip, venv' > /dev/null 2>&1 ||
    complain "the venv module of '$python'" "apt-get install python3-venv"
  "$python" -c 'import os, sys, sysconfig as s; sys.exit(not os.path.exists(s.get_paths()["include"] + "/Python.h"))' ||
    complain "the headers of '$python' (Python.h)" "apt-get install python3-dev"
fi

# Prints the major version of compiler $1, or nothing.
major() {
  command -v "$1" > /dev/null 2>&1 && "$1" -dumpversion 2> /dev/null | cut -d. -f1
}

cc=${CC:-cc}
if [ -n "${CC:-}" ] && ! command -v "$CC" > /dev/null 2>&1; then
  complain "the compiler that CC names ('$CC' is not a command)" "apt-get install gcc g++, or unset CC"
fi
command -v "$cc" > /dev/null 2>&1 || cc=gcc
command -v "$cc" > /dev/null 2>&1 || cc=clang
version=$(major "$cc")
least=12
"$cc" --version 2> /dev/null | grep -qi clang && least=16
if [ -z "$version" ]; then
  complain "a C and C++ compiler (gcc >= 12 or clang >= 16)" "apt-get install gcc g++"
elif [ "$version" -lt "$least" ]; then
  complain "a newer compiler: '$cc' is version $version, needed gcc >= 12 or clang >= 16 (CC and CXX name another)" \
    "apt-get install gcc-12 g++-12"
else
  cxx=${CXX:-c++}
  command -v "$cxx" > /dev/null 2>&1 || command -v g++ > /dev/null 2>&1 || command -v clang++ > /dev/null 2>&1 ||
    complain "a C++ compiler" "apt-get install g++"
fi
exit $fail
