package executortest

func sh() Dialect {
	return Dialect{Name: "sh", Extension: "sh", Programs: map[Program]Script{
		Words:    {Text: `for word in "$@"; do printf '%s\000' "$word"; done`},
		Exit:     {Text: `exit "${1:-7}"`},
		Both:     {Text: "echo out\necho warning >&2\n"},
		Echo:     {Text: "exec cat\n"},
		Progress: {Text: "echo progress\nsleep 300\n"},
		Deaf:     {Text: "trap '' TERM INT HUP\necho deaf\nsleep 300\n"},
		Child:    {Text: "sleep 300 &\necho hi\n"},
		Orphan: {Text: `(setsid sh -c 'echo >"$TMPDIR/ready"; exec sleep 300' &)
until [ -s "$TMPDIR/ready" ]; do sleep 0.01; done
echo hi
`},
		Storm: {Text: `i=0
while [ $i -lt 30 ]; do
	(while :; do /bin/true; done) &
	i=$((i + 1))
done
echo storm
wait
`},
		Flood: {Text: "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n"},
		Much:  {Text: `head -c "$1" /dev/zero | tr '\000' a`},
		Drip:  {Text: "while :; do printf .; sleep 0.1; done\n"},
		Bytes: {Text: `printf '\377\376\000 \033[31mred\033[0m \360\237\222\251\n--- stdout ---\nexit code 0\n\342\202'`},
		Kill:  {Text: "kill -KILL $$\n"},
		Crash: {Text: "ulimit -c unlimited 2>/dev/null\nkill -SEGV $$\n"},
		Hunger: {Text: `x=aaaaaaaaaaaaaaaa
while :; do x=$x$x; done
`},
		Arrow:    {Text: "echo '→'\n"},
		Direct:   {Text: "./tools/hello\n", Files: hello},
		Siblings: {Text: ". scripts/beside.sh\n. lib/deep/deep.sh\necho \"$beside $deep\"\n", Files: map[string]string{"scripts/beside.sh": "beside=beside\n", "lib/deep/deep.sh": "deep=deep\n"}},
		Asset:    {Text: "cat assets/data.txt\n", Files: asset},
		Outputs: {Text: `mkdir outputs/a
printf '1,2\n' >outputs/a/b.csv
printf x >"outputs/ü.txt"
ln -s /etc/passwd outputs/link
ln -s /etc outputs/folder-link
mkfifo outputs/fifo
truncate -s 1T outputs/sparse
printf x >outputs/../beside
printf x >outputs/one
ln outputs/one outputs/two
`},
		Many: {Text: "for i in 1 2 3 4 5; do printf 0123456789 >outputs/$i; done\n"},
		Traces: {Text: `mark=trace-$(echo of-a-run)
grep -s "$mark" "$0" "$HOME/state" "$TMPDIR/state" report.txt inputs/data.txt | sed 's/^/found: /'
for f in "$HOME/state" "$TMPDIR/state" report.txt; do echo "$mark" >"$f" || exit 1; done
for f in "$0" inputs/data.txt; do echo "# $mark" >>"$f" || exit 1; done
echo done
`},
		Environment: {Text: "exec env\n"},
		Inputs:      {Text: "cat inputs/data.txt\necho more >>inputs/data.txt\n"},
		Edits: {Text: `printf new >inputs/folder/edited.txt
printf n >inputs/folder/new.txt
rm inputs/gone.txt
mkdir outputs/inputs
printf input >inputs/both.txt
printf output >outputs/inputs/both.txt
`},
		CarriageReturns: {Text: "if true; then\r\n\techo yes\r\nfi\r\n"},
		Locked: {Text: `for d in . outputs inputs "$HOME" "$TMPDIR"; do
	mkdir -p "$d/locked/inside"
	echo x >"$d/locked/inside/file"
	chmod 000 "$d/locked/inside/file" "$d/locked/inside" "$d/locked"
done
# A shell may give up, or be stopped by its own library, where its folder has no path.
(cd "$TMPDIR"
i=0
while [ $i -lt 300 ]; do
	mkdir aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
	cd aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
	i=$((i + 1))
done) || echo deep >&2
`},
	}}
}

var (
	hello = map[string]string{"tools/hello": "#!/bin/sh\necho hello\n"}
	asset = map[string]string{"assets/data.txt": "an asset\n"}
)
