#!/bin/sh
# Unpack Debian's packages into a folder, without root and without installing anything:
# scripts/unpack_debian.sh FOLDER < PINS, where each line of PINS is SHA256 PACKAGE VERSION.
#
# Packages come from wherever this machine's apt gets them, and must be exactly the ones named;
# when Debian replaces one, take version and sum from `apt-cache show PACKAGE`.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 FOLDER < PINS" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"
mkdir debs

# Lists of our own, for a machine that has none, or old ones.
mkdir -p state/lists/partial cache/archives/partial
own=
apt() {
    if [ -n "$own" ]; then
        set -- -o "Dir::State=$work/state" -o "Dir::State::Lists=$work/state/lists" \
            -o "Dir::Cache=$work/cache" "$@"
    fi
    apt-get -q "$@" >"$work/log" 2>&1
}
download() {
    (cd debs && apt download "$1")
}

while read -r sum name version; do
    download "$name=$version" || {
        if [ -z "$own" ]; then
            own=yes
            apt update || cat log >&2
        fi
        download "$name=$version"
    } || {
        cat log >&2
        echo "$name=$version cannot be downloaded: has Debian replaced it?" >&2
        exit 1
    }
    deb=$(echo debs/"$name"_*.deb)
    echo "$sum  $deb" | sha256sum --check --quiet >&2
    dpkg -x "$deb" "$folder"
done
