#!/bin/sh
# Make or refresh one virtual environment: make_env.sh DIRECTORY LOCKFILE
#
# The environment is rebuilt when its lock file changed, else kept; hustings itself is installed
# from this source tree, editable. PYTHON names the interpreter, else the newest found is used.
set -eu

environment=$1
lock=$2

refuse() {
    echo "hustings: $*" >&2
    exit 1
}

recent_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if [ -n "${PYTHON:-}" ]; then
    recent_enough "$PYTHON" || refuse "PYTHON=$PYTHON is not a Python 3.11 or newer."
else
    # A name on the PATH may be a shim with no interpreter behind it, so each one is run.
    for candidate in python3.13 python3.12 python3.11 python3; do
        if recent_enough "$candidate"; then
            PYTHON=$candidate
            break
        fi
    done
    [ -n "${PYTHON:-}" ] ||
        refuse "no Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python"
fi

"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    refuse "$PYTHON cannot make virtual environments; install its venv package" \
        "(on Debian and Ubuntu: apt install python3-venv)."

export PIP_DISABLE_PIP_VERSION_CHECK=1

if ! cmp -s "$lock" "$environment/lock.txt"; then
    echo "== $environment: installing $lock"
    rm -rf "$environment"
    "$PYTHON" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --require-hashes -r "$lock"
    cp "$lock" "$environment/lock.txt"
fi

# The lock holds the build tools too, so nothing more is fetched here.
"$environment/bin/python" -m pip install --quiet --no-build-isolation --no-deps --editable .
touch "$environment/ready"
