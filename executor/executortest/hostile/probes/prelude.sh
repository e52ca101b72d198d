# What every probe has: the names of the host's canaries as variables, and the
# words in which it tells what came of each attempt. It never holds a secret.
for word; do
	eval "${word%%=*}=\${word#*=}"
done
ok() { printf '%s\tok\t%s\n' "$1" "$(printf %s "${2-}" | tr '\n\000' '  ')"; }
no() { printf '%s\tno\t%s\n' "$1" "${2-}"; }
reads() {
	text=$(head -c 4096 -- "$2" 2>/dev/null | tr '\000' ' ')
	if [ -n "$text" ]; then ok "$1" "$text"; else no "$1"; fi
}
tries() {
	attempt=$1
	shift
	if ("$@") >/dev/null 2>&1; then ok "$attempt"; else no "$attempt" "status $?"; fi
}
