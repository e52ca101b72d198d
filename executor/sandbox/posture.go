//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/grant"
	"golang.org/x/sys/unix"
)

// The walls by which attempts are sorted.
const (
	wallFiles      = "files"
	wallLandlock   = "files, second layer"
	wallNetwork    = "network"
	wallLoopback   = "network, loopback"
	wallProcesses  = "other processes"
	wallPrivileges = "privileges"
	wallCalls      = "system calls"
	wallDisk       = "disk"
	wallTasks      = "processes"
)

// Posture says which walls stand. It was proved by [New].
func (e *Executor) Posture(context.Context) (executor.Posture, error) { return e.posture, nil }

// probeMemory is the limit of memory of a probe: enough for its files.
const probeMemory = 32 << 20

func (e *Executor) limit(processes int) box.Limits {
	return e.limits.Of(probeMemory, processes+overhead)
}

// prove makes boxes whose probes attempt what the walls must keep them from, and
// makes the posture of what came of it. A required wall that does not stand is an
// error.
func (e *Executor) prove() error {
	list := attempts(e.config.Folders)
	found, err := e.try(probe{list, e.limit(8)})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWall, err)
	}
	if err := errors.Join(found.hold(list), e.proveKill(), e.proveProcesses()); err != nil {
		return fmt.Errorf("%w: %w", ErrWall, err)
	}
	noMemory, err := e.proveMemory()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWall, err)
	}
	e.noLoopback = e.proveLoopback()
	e.record(found.posture)
	made := map[string][]string{}
	for _, a := range slices.Concat(list, loopbackAttempts()) {
		made[a.wall] = append(made[a.wall], a.what)
	}
	e.posture = executor.Posture{Executor: Name, Tier: grant.Sandbox, Walls: e.walls(made, noMemory)}
	return nil
}

// proveKill holds that a call for which a script is killed kills it.
func (e *Executor) proveKill() error {
	found, err := e.try(probe{[]attempt{{wall: wallCalls, what: "mounting", nr: unix.SYS_MOUNT}}, e.limit(8)})
	if err == nil && (!found.told || !found.status.Signaled() || found.status.Signal() != syscall.SIGSYS) {
		err = errors.New("a script that tries to mount is not killed")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", wallCalls, err)
	}
	return nil
}

// proveMemory holds that a box that takes more memory than its limit is stopped,
// or says what is lacking. Its error is that of a probe that came to nothing.
func (e *Executor) proveMemory() (lacking, err error) {
	if !e.limits.HoldsMemory() {
		return e.limits.Err, nil
	}
	take := func(*program) []value {
		return []value{number(0), number(4 * probeMemory), number(unix.PROT_READ | unix.PROT_WRITE), number(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE), number(^uint64(0)), number(0)}
	}
	found, err := e.try(probe{[]attempt{{what: "taking too much memory", nr: unix.SYS_MMAP, args: take}}, e.limit(8)})
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	if !found.outOfMemory {
		lacking = errors.New("a box could take four times its limit of memory")
	}
	return lacking, nil
}

// proveProcesses holds that a box cannot have more processes than its limit. Its
// cgroup holds that, and its identity, which no other box has: one of them always
// does, so that a host where neither did would have no wall that can be told of.
func (e *Executor) proveProcesses() error {
	const most = 4
	list := forks(most)
	found, err := e.try(probe{list, e.limit(most)})
	if err == nil {
		err = found.hold(list)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", wallTasks, err)
	}
	return nil
}

// forks are attempts to start more processes than a box may have. The first must
// succeed, as a control, and the last be refused. None of them ends meanwhile:
// whether one is refused does not depend on how fast the others come and go.
func forks(most int) []attempt {
	fork := attempt{wall: wallTasks, what: "starting a process", nr: unix.SYS_CLONE, args: numbers(int(unix.SIGCHLD), 0, 0, 0, 0), stays: true}
	list := []attempt{fork}
	fork.want = []unix.Errno{0, unix.EAGAIN} // what a box has beside the script counts too
	for range most + overhead - 1 {
		list = append(list, fork)
	}
	fork.what, fork.want = "starting more processes than its limit", []unix.Errno{unix.EAGAIN}
	return append(list, fork)
}

const delegate = "start the host in a cgroup that is delegated to its user (systemd: Delegate=yes and DelegateSubgroup=host)"

// walls makes the posture's lines of what the probes attempted and came to.
func (e *Executor) walls(made map[string][]string, noMemory error) []executor.Wall {
	refused := func(wall, more string) executor.Wall {
		return executor.Wall{Name: wall, Stands: true, Proof: "a probe in a box tried and was refused, with controls that succeed: " + strings.Join(made[wall], ", ") + more}
	}
	limit := func(name string, err error, proof, without string) executor.Wall {
		if err == nil {
			return executor.Wall{Name: name, Stands: true, Proof: proof}
		}
		return executor.Wall{Name: name, Proof: fmt.Sprintf("%s (%s)", without, strings.ReplaceAll(err.Error(), "\n", "; ")), Remedy: delegate}
	}
	noCPU := e.limits.Err
	if e.limits.HoldsCPU() {
		noCPU = nil
	}
	processes := "a probe was refused more processes than its limit, which that of its identity holds: each box has its own"
	if e.limits.HoldsProcesses() {
		processes = "a probe was refused more processes than its limit, which its cgroup holds"
	}
	rate := "; the rate of disks is not limited, which nobody asked for"
	if l := e.limits.Each; e.limits.HoldsDisks() {
		rate = fmt.Sprintf("; at most %d bytes a second are read from and written to each of the disks %s, which is written before a process enters the cgroup", l.DiskRate, strings.Join(l.Disks, ", "))
	}
	return []executor.Wall{
		refused(wallFiles, "; each run's mounts are compared with the list from outside"),
		refused(wallLandlock, fmt.Sprintf(" (Landlock, version %d)", e.setup.landlock.abi)),
		refused(wallNetwork, ""),
		e.wallOfLoopback(refused(wallLoopback, ", in a box with loopback")),
		refused(wallProcesses, ""),
		refused(wallPrivileges, "; each run's capabilities are seen to be none from outside"),
		refused(wallCalls, fmt.Sprintf("; mounting killed it; the filter has %d instructions", len(e.setup.filter)/8)),
		refused(wallDisk, rate),
		{Name: "environment", Stands: true, Proof: "a box has none before its interpreter starts, which is seen from outside; the interpreter is given the fixed set and what the policy adds"},
		{Name: "descriptors", Stands: true, Proof: "before it starts, a box is seen to have its three streams open, and two files that close at the start"},
		{Name: "core files", Stands: true, Proof: "before it starts, a box is seen to have a limit of 1 byte, which also keeps its memory from a handler of the system"},
		{Name: "cleanup", Stands: true, Proof: "the box's first process was waited for, and the kernel ends it only behind all the others of its namespace"},
		limit("memory", noMemory, "a probe that took four times its limit was killed by its cgroup", "no cgroup limits a run's memory: each process is limited alone, to as much as the whole run may have"),
		{Name: wallTasks, Stands: true, Proof: processes},
		limit("processor time", noCPU, "the share is written before a process enters the cgroup, which lies in that of the tenant; all tenants have the same weight", "no cgroup limits a run's share of the processors: each process is limited to the run's time alone"),
	}
}
