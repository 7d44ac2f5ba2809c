#!/bin/sh
# libfaketime from Debian's package, in a folder: scripts/fetch_faketime.sh FOLDER
#
# Afterwards FOLDER/libfaketime.so.1 can be preloaded. Does nothing if it is there.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
case $1 in
    /*) folder=$1 ;;
    *) folder=$PWD/$1 ;;
esac
[ ! -e "$folder/libfaketime.so.1" ] || exit 0

mkdir -p "$folder"
scratch=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM
"$here/unpack_debian.sh" "$scratch" <<PINS
b09481e7690680966005330c3f907bba4b5eefc35e1faaea4783cc55655d1150 libfaketime 0.9.10-2.1
PINS
mv "$scratch"/usr/lib/*/faketime/libfaketime.so.1 "$folder/libfaketime.so.1"
