#!/bin/sh
# Makes the first process of a container from its source: build.sh ARCH OUT. The source
# holds the ELF header too, and so no version of the tools changes a byte.
set -eu
cd "$(dirname "$0")"
case $1 in
amd64) tools=x86_64-linux-gnu- ;;
arm64) tools=aarch64-linux-gnu- ;;
*) echo "build.sh: no such architecture: $1" >&2; exit 2 ;;
esac
command -v "${tools}as" >/dev/null || tools=
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
"${tools}as" -o "$dir/object" "$1.s"
"${tools}ld" -e _start -Ttext=0x400000 -o "$dir/linked" "$dir/object"
"${tools}objcopy" -O binary -j .text "$dir/linked" "$2"
chmod 644 "$2"
