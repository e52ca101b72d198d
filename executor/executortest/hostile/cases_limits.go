//go:build linux

package hostile

import (
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

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

func limitCases() []testCase {
	return []testCase{
		{id: "R01", title: "starts 300 processes", class: "A3/HostDoS", wall: Tasks, hurts: true, tries: names("processes")},
		{id: "R02", title: "starts 300 threads", class: "A3/HostDoS", wall: Tasks, hurts: true, tries: names("threads")},
		{id: "R03", title: "takes more memory than it may have, of every kind", class: "A3/HostDoS", wall: Memory, hurts: true, play: hunger,
			policy: func(p *gate.Policy) { p.Memory = memory },
			tries:  all(names("heap", "shared", "file", "children"), forRoot("pipes"))},
		{id: "R06", title: "keeps four processors busy", class: "A3/PeerDoS", wall: Processors, hurts: true, tries: perhaps("the host may have one processor, or no time", "processors")},
		{id: "R13", title: "opens a thousand files and counters", class: "A3/HostDoS", wall: OpenFiles, hurts: true, tries: perhaps("the host's own limit may be as low", "files", "events")},
	}
}
