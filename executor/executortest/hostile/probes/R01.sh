n=0
while [ $n -lt 200 ]; do
	sleep "6.$token" >/dev/null 2>&1 &
	n=$((n + 1))
done 2>/dev/null
n=$(jobs -r 2>/dev/null | wc -l)
if [ "$n" -gt 100 ]; then ok processes "$n"; else no processes "$n"; fi
