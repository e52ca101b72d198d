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

// must is what a wall holds.
var must = map[Wall]string{
	Files:       "no file of the host is read or changed",
	Environment: "no variable of the host is seen",
	Descriptors: "nothing that the host has open is reached",
	Processes:   "no process of the host is seen, stopped or traced",
	Privileges:  "no right is had or gained",
	Network:     "nothing outside is reached",
	Kernel:      "the kernel refuses, or ends the script",
	Runs:        "nothing comes from another run",
	SharedFiles: "nothing comes from another run by way of a program",
	Memory:      "the run is ended, or refused more",
	Tasks:       "no more processes than the policy says",
	Processors:  "no more time than that of one processor",
	Space:       "no more space than the policy says",
	OpenFiles:   "no more open files than the policy says",
	Cleanup:     "the run ends in time and leaves no process",
	Collection:  "the host takes regular files alone, within limits",
}

// Must says what the wall holds, in a few words for people.
func (w Wall) Must() string { return must[w] }

// Walls returns all walls.
func Walls() []Wall {
	return []Wall{Files, Environment, Descriptors, Processes, Privileges, Network, Kernel, Runs, SharedFiles,
		Memory, Tasks, Processors, Space, OpenFiles, Cleanup, Collection}
}

// plain are the walls that a plain process has too.
var plain = []Wall{Environment, Descriptors, Cleanup, Collection}

// OwnKernel reports whether an executor proved that its runs have a kernel of their
// own: see [Setup].OwnKernel.
func OwnKernel(p executor.Posture) bool { return p.Tier.Meets(grant.Kernel) && !p.Claimed }

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
