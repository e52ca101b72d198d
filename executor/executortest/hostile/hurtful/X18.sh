# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
i=0
while [ $i -lt 20 ]; do
	(n=0; while [ $n -lt 500 ]; do (:); n=$((n + 1)); done; sleep "211.$token") >/dev/null 2>&1 &
	i=$((i + 1))
done
ok laid
sleep "211.$token" >/dev/null 2>&1
