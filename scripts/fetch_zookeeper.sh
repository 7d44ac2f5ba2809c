#!/bin/sh
# ZooKeeper from Debian's packages, in a folder: scripts/fetch_zookeeper.sh FOLDER
#
# Afterwards FOLDER/jars holds what `java -cp "FOLDER/jars/*"` needs. Does nothing if it is there.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
case $1 in
    /*) folder=$1 ;;
    *) folder=$PWD/$1 ;;
esac
[ ! -d "$folder/jars" ] || exit 0

mkdir -p "$(dirname "$folder")"
scratch=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM
"$here/unpack_debian.sh" "$scratch/unpacked" <<PINS
b2976f2bb4352d01713d3e40a8e047a3219c05f5fa53054e050246a6bc179053 libzookeeper-java 3.8.0-11+deb12u2
6307cc25286cf9c1afdcc16c1215534203aadc7a58e0f6103734d1ccc3da7f65 libcommons-cli-java 1.5.0-1
11ace1f417d768481dc13c7780ce44c5c305255399a352746594a94a1a7756b4 libcommons-io-java 2.11.0-2
2597703fc3f830534184c71ca2749e0c819fd7a724c7603e3b6264a5fb336a37 libdropwizard-metrics-java 3.2.6-1
0e5fadedc1e207c73b9adbeb4900f39e5d18487f93103b4346d548226bfde1af libjackson2-annotations-java 2.14.0-1
1624447c70a1e2c204c32315ecd6fa15ab5918bce6d95b8da621bb381d99215f libjackson2-core-java 2.14.1-2~deb12u1
0b44caca8d30d03dd046e15f31f6b0ecb86fdb1c6c7ace0966507191a9434217 libjackson2-databind-java 2.14.0-1+deb12u1
c36c7358464e6082abfb367d033af4fd7fb9bcf8378801691fa041740bb32f2f libjetty9-java 9.4.57-1.1~deb12u1
d4cb9329f203d1251d90583f86223fbf2de5bf60e174c1d8fdc8b1c34f320af0 libservlet-api-java 4.0.1-2
a8368dfd04f0dc8f6c9234fd99069106a9be0a60f7a71e6d212ab7629cd1e1a3 libnetty-java 1:4.1.48-7+deb12u2
38166cb6ec4a956b1f45f5baf18a115fd692c7fe0318b7cb332c4caaa7375f4e libslf4j-java 1.7.32-1
529cb792389534224ba1513d55ba2c2af287c44cdf1dc8ec2d3b44474cce27d7 libsnappy-java 1.1.8.3-1
a8e879badd16955724ff38e064cce0a52c377558f58afd8e6d01bf3b81944cb4 liblog4j1.2-java 1.2.17-11
PINS

# Files only: the rest are other names of the same files.
mkdir "$scratch/jars"
find "$scratch/unpacked/usr/share" -name '*.jar' -type f -exec mv {} "$scratch/jars/" \;
# Whoever is first wins; nobody sees half a folder.
mkdir -p "$folder"
mv -T "$scratch/jars" "$folder/jars" 2>/dev/null || [ -d "$folder/jars" ]
