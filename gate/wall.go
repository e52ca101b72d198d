package gate

import (
	"cmp"
	"fmt"
	"slices"
)

// A Wall is one thing that the executor keeps a script from, by the name that its
// posture has for it.
type Wall struct {
	Name   string
	Stands bool
	Remedy string // how to get it, where it does not stand
}

// Walls returns the names of walls that a policy can ask for: those that the
// executors of this program tell of. "memory", "processes" and "processor time"
// are the limits that not every host can hold.
func Walls() []string {
	return []string{
		"memory", "processes", "processor time", "files", "files, second layer", "network", "network, loopback", "other processes",
		"privileges", "system calls", "disk", "environment", "descriptors", "core files", "cleanup", "staging",
	}
}

func checkWalls(list []string) error {
	for i, name := range list {
		if !slices.Contains(Walls(), name) {
			return fmt.Errorf("%w: %q is no wall that can be asked for; those are %q", ErrPolicy, name, Walls())
		}
		if slices.Contains(list[:i], name) {
			return fmt.Errorf("%w: the wall %q stands twice", ErrPolicy, name)
		}
	}
	return nil
}

// walled holds that each wall stands that the host or the tenant's policy asks
// for. A claim that is not trusted has none.
func walled(host Host, policy Policy, s Standing) error {
	for _, name := range slices.Concat(host.RequireWalls, policy.RequireWalls) {
		deny := func(remedy, format string, args ...any) error {
			return &Denial{Gate: TierGate, Remedy: cmp.Or(remedy, "run it on a host where the wall stands, or do not ask for it"),
				Err: fmt.Errorf("the wall %q is asked for; executor %q "+format, append([]any{name, s.Executor}, args...)...)}
		}
		if s.Claimed && !host.TrustClaimed {
			return deny("take an executor that proves its walls, or trust what this one claims", "proves none")
		}
		found := false
		for _, w := range s.Walls {
			if w.Name != name {
				continue
			}
			if found = true; !w.Stands {
				return deny(w.Remedy, "has it not on this host")
			}
		}
		if !found {
			return deny("", "knows of no such wall")
		}
	}
	return nil
}
