//go:build linux

package hostile

import (
	"embed"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// hurtfulProbes are the scripts of the cases that could hurt a host.
//
//go:embed hurtful
var hurtfulProbes embed.FS

// memory is what a run of the cases about it may have, in bytes.
const memory = 64 << 20

// hunger runs the script once for each kind of memory.
func hunger(k *trial, ex executor.Executor) *findings {
	k.Helper()
	sum := &findings{said: map[string]said{}, through: map[string]string{}}
	for _, a := range k.tries() {
		f := k.judged(func(token string) *findings {
			return k.execute(k.Context(), ex, token, map[string]string{"kind": a.name}, nil)
		})
		s, ok := f.said[a.name]
		if e := f.result.Ending; len(f.faults) == 0 && !ok && e != executor.OutOfMemory() {
			f.fault("%s: it ended with %v, and not for want of memory: %.300s", a.name, e, f.result.Stderr)
		}
		sum.said[a.name] = s
		sum.faults = append(sum.faults, f.faults...)
		for n, how := range f.through {
			sum.through[n] = how
		}
	}
	return sum
}

// hurtfulCases are those by which a host would suffer on which the wall is missing
// after all. Only [Run] and [KnockOut] know of them: a command that calls
// [RunHarmless] does not hold them.
func hurtfulCases() []testCase {
	laid := []string{"laid"}
	return from(&hurtfulProbes, []testCase{
		{id: "F14", title: "fills the disk, and the table of its files", class: "A3/HostDoS", wall: Space,
			tries: all(names("outputs", "temporary folder", "skill", "many files"), perhaps("the host's own may be smaller", "shared memory"))},
		{id: "F18", title: "hangs attributes on files, and watches all that it sees", class: "A3/HostDoS", wall: Space,
			tries: all(perhaps("the file system may hold no such attributes", "attributes"), perhaps("the host may have few files, or a limit as low", "watches"))},
		{id: "X18", title: "has 40 processes that start others until the timeout", class: "A3/Persist", wall: Cleanup, armed: laid, policy: crowd, ends: timedOut, tries: judged("survivors"), play: expiring},
		{id: "G19", title: "has 40 processes that start others when the caller gives up", class: "A3/Persist", wall: Cleanup, armed: laid, policy: crowd, tries: judged("survivors"), play: cancelled},
		{id: "X20", title: "has 300 children that nobody waits for, and 200 orphans before", class: "A3/HostDoS", wall: Tasks, armed: []string{"orphans"}, tries: names("zombies")},
		{id: "U07", title: "uses up what the kernel counts for each user", class: "A3/PeerDoS", wall: Runs, play: pair,
			tries: perhaps("the host's own limit may be higher than that of open files", "watches")},
		{id: "R01", title: "starts 300 processes", class: "A3/HostDoS", wall: Tasks, tries: names("processes")},
		{id: "R02", title: "starts 300 threads", class: "A3/HostDoS", wall: Tasks, tries: names("threads")},
		{id: "R03", title: "takes more memory than it may have, of every kind", class: "A3/HostDoS", wall: Memory, play: hunger,
			policy: func(p *gate.Policy) { p.Memory = memory },
			tries:  all(names("heap", "shared", "file", "children"), forRoot("pipes"))},
		{id: "R06", title: "keeps four processors busy", class: "A3/PeerDoS", wall: Processors, tries: perhaps("the host may have one processor, or no time", "processors")},
		{id: "R13", title: "opens a thousand files and counters", class: "A3/HostDoS", wall: OpenFiles, tries: perhaps("the host's own limit may be as low", "files", "events")},
		{id: "R27", title: "gives its interpreter a number and a pattern without end", class: "A3/HostDoS", wall: Cleanup, armed: laid, ends: timedOut, tries: judged("late"), play: expiring},
	})
}
