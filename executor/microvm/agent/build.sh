#!/bin/sh
# Makes the agent of a micro-VM, as package kit has it within itself, and the sum of
# what it is made of: build.sh [FOLDER]. Of the same source, the same Go makes the same
# bytes.
set -eu
cd "$(dirname "$0")"
out=${1:-../kit}
export LC_ALL=C
made=$(mktemp)
trap 'rm -f "$made"' EXIT
CGO_ENABLED=0 GOOS=linux GOARCH=amd64 GOAMD64=v1 GOFLAGS='' GOEXPERIMENT='' \
	go build -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o "$made" .
gzip -9n <"$made" >"$out/agent.gz"
for f in *.go wait.js wait.py ../internal/frame/*.go ../../../bundle/*.go; do
	case $f in
	*_test.go | *_other.go) ;;
	*) basename "$f"; cat "$f" ;;
	esac
done | sha256sum | cut -c 1-64 >"$out/agent.sum"
