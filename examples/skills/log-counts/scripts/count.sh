#!/bin/sh
# Count the lines of an access log by one of their fields.
#
# usage: count.sh [-n LINES] [-s STATUS] status|path|client|hour FILE
set -eu

usage() {
	echo "count.sh: $1" >&2
	echo "usage: count.sh [-n LINES] [-s STATUS] status|path|client|hour FILE" >&2
	exit 2
}

lines=10
status=
while getopts n:s: option; do
	case $option in
	n) lines=$OPTARG ;;
	s) status=$OPTARG ;;
	*) usage "unknown option" ;;
	esac
done
shift $((OPTIND - 1))

case $lines in
'' | 0* | *[!0-9]* | ?????*) usage "-n takes a number from 1 to 1000" ;;
esac
[ "$lines" -le 1000 ] || usage "-n takes a number from 1 to 1000"
case $status in
*[!0-9]* | ????*) usage "-s takes one to three digits" ;;
esac
[ $# -eq 2 ] || usage "say what to count by, and the file"
case $1 in
status | path | client | hour) ;;
*) usage "cannot count by $1" ;;
esac
if ! [ -f "$2" ] || ! [ -r "$2" ]; then
	echo "count.sh: cannot read $2" >&2
	exit 1
fi

# The file is read as standard input: awk would take a name with "=" in it for an
# assignment.
LC_ALL=C awk -v by="$1" -v want="$status" '
# A line is: client ident user [time zone] "request" status size ...
{
	quote = index($0, "\"")
	bracket = index($0, "[")
	if (quote == 0 || bracket == 0 || bracket > quote) { skipped++; next }
	rest = substr($0, quote + 1)
	end = index(rest, "\" ")
	if (end == 0) { skipped++; next }
	request = substr(rest, 1, end - 1)
	split(substr(rest, end + 2), after, " ")
	code = after[1]
	if (code !~ /^[1-5][0-9][0-9]$/) { skipped++; next }
	if (want != "" && index(code, want) != 1) next
	if (by == "status") key = code
	else if (by == "client") key = $1
	else if (by == "hour") key = substr($0, bracket + 1, 14)
	else {
		split(request, word, " ")
		key = word[2]
		sub(/[?].*/, "", key)
		if (key == "") key = "(none)"
	}
	count[key]++
}
END {
	for (key in count) printf "%d\t%s\n", count[key], key
	if (skipped) printf "count.sh: %d lines of another form were skipped\n", skipped | "cat >&2"
}' <"$2" | LC_ALL=C sort -k1,1nr -k2 | head -n "$lines"
