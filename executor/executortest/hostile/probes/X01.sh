others=
for f in /proc/$$/fd/*; do
	case ${f##*/} in
	0 | 1 | 2 | 255) ;; # bash itself opens the script as 255
	*) [ -e "$f" ] && [ "$(readlink "$f")" != "$(readlink -f "$0")" ] && others="$others ${f##*/}" ;;
	esac
done
if [ -n "$others" ]; then ok others "$others"; else no others; fi
