package hostile

import (
	"slices"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/grant"
)

// A Wall is one thing that an executor keeps a script from. Where a posture has a
// wall of that name, it is the same.
type Wall string

// The walls.
const (
	Files       Wall = "files"           // the host's files
	Environment Wall = "environment"     // the host's variables
	Descriptors Wall = "descriptors"     // what the host has open
	Processes   Wall = "other processes" // the host's processes: to see, to signal, to trace
	Privileges  Wall = "privileges"      // capabilities, other identities, namespaces
	Network     Wall = "network"         // sockets of the host, of other hosts, and of strange families
	Kernel      Wall = "system calls"    // what no script needs of the kernel
	Runs        Wall = "other runs"      // another run at the same time or before
	SharedFiles Wall = "shared files"    // another run, by way of the programs that both read
	Memory      Wall = "memory"          // Request.Memory
	Tasks       Wall = "processes"       // Request.Processes
	Processors  Wall = "processor time"  // the time of more than one processor
	Space       Wall = "space"           // the host's disk and memory, by files
	OpenFiles   Wall = "open files"      // the number of descriptors
	Cleanup     Wall = "cleanup"         // processes that outlive their run
	Collection  Wall = "collection"      // the host, by way of the files that a run leaves
)

// Walls returns all walls.
func Walls() []Wall {
	return []Wall{Files, Environment, Descriptors, Processes, Privileges, Network, Kernel, Runs, SharedFiles,
		Memory, Tasks, Processors, Space, OpenFiles, Cleanup, Collection}
}

// plain are the walls that a plain process has too.
var plain = []Wall{Environment, Descriptors, Cleanup, Collection}

// Lacking returns the walls that an executor does not promise, by its posture: those
// that it says do not stand; below the tier "sandbox", all but those that a plain
// process has; below "kernel", the one against runs that read the same programs.
func Lacking(p executor.Posture) []Wall {
	stands := map[Wall]bool{}
	for _, w := range p.Walls {
		stands[Wall(w.Name)] = w.Stands
	}
	var list []Wall
	for _, w := range Walls() {
		up, told := stands[w]
		if !told {
			up = p.Tier.Meets(grant.Sandbox) || slices.Contains(plain, w)
		}
		if !up || w == SharedFiles && !p.Tier.Meets(grant.Kernel) {
			list = append(list, w)
		}
	}
	return list
}
