tcp() { exec 3<>"/dev/tcp/$1/$2" && head -n 1 <&3; }
if [ -z "${BASH_VERSION-}" ]; then
	no TCP 'this shell has no sockets'
elif text=$(tcp 127.0.0.1 "$tcp4" 2>/dev/null) && [ -n "$text" ]; then
	ok TCP "$text"
else
	no TCP
fi
