//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/grant"
)

// Posture says which walls stand: few. It was proved by [New].
func (e *Executor) Posture(context.Context) (executor.Posture, error) {
	return e.posture, nil
}

// prove starts a process as a script is started, looks at it from outside, stops
// it, and makes the posture of what it saw. Where the process cannot be found and
// stopped by its cgroup, runs get none.
func (e *Executor) prove(cgroupErr error) error {
	seen, err := e.probe()
	if err != nil {
		cgroupErr = errors.Join(cgroupErr, err)
	}
	if cgroupErr != nil {
		if err := e.cgroups.Close(); err != nil {
			return err
		}
		e.cgroups = nil
	}
	e.posture = executor.Posture{Executor: Name, Tier: grant.Process, Walls: e.walls(seen, cgroupErr)}
	return nil
}

// sleepers do nothing for a while, which is all that a probe needs.
var sleepers = []string{"/usr/bin/sleep", "/bin/sleep"}

// probe returns what was seen of the process.
func (e *Executor) probe() (seen sight, err error) {
	r := &staged{}
	defer func() { e.clean(r) }()
	for _, path := range sleepers {
		if r.program, err = os.Open(path); err == nil {
			break
		}
	}
	if err != nil {
		return seen, fmt.Errorf("there is no program to prove it with: %w", err)
	}
	if r.Run, err = e.instance.NewRun(); err != nil {
		return seen, err
	}
	if err = r.Lay(bundle.Bundle{}, bundle.Bundle{}); err != nil {
		return seen, err
	}
	if r.stdin, err = r.Stdin(nil); err != nil {
		return seen, err
	}
	if r.streams, err = box.NewStreams(0, nil, nil); err != nil {
		return seen, err
	}
	if r.cgroup, err = e.cgroups.NewRun(r.Name(), 64<<20, 8); err != nil {
		return seen, err
	}
	env := environment(r.Run, nil)
	c, err := start(r, env, []string{r.program.Name(), "60"})
	if err != nil {
		return seen, err
	}
	r.streams.Start()
	seen = look(c.process.Pid, env)
	if r.cgroup != nil {
		pids, perr := r.cgroup.Pids()
		if perr != nil || len(pids) != 1 || pids[0] != c.process.Pid {
			err = errors.Join(perr, fmt.Errorf("a process was started in a cgroup, and is not there"))
		}
		err = errors.Join(err, r.cgroup.Kill())
	} else {
		_, err = r.stopAll(c)
	}
	select {
	case <-c.ended:
	case <-time.After(time.Second):
		err = errors.Join(err, errors.New("a process that was stopped did not end"))
		_ = c.process.Kill()
	}
	status, rerr := c.reap()
	r.streams.Finish(drainTime)
	if err == nil && rerr == nil && (!status.Signaled() || status.Signal() != syscall.SIGKILL) {
		err = errors.New("a process ended otherwise than by being stopped")
	}
	return seen, errors.Join(err, rerr)
}

const needsSandbox = "use an executor of a higher tier"

func (e *Executor) walls(seen sight, cgroupErr error) []executor.Wall {
	cleanup := executor.Wall{Name: "cleanup", Stands: e.cgroups != nil, Proof: "a process was started in a cgroup, found in it and stopped by it"}
	if !cleanup.Stands {
		cleanup.Proof = fmt.Sprintf("runs have no cgroup (%v): a process that leaves its session and hides its environment and its folder outlives the run", cgroupErr)
		cleanup.Remedy = "start the host in a cgroup of version 2 that is delegated to its user (systemd: Delegate=yes)"
	}
	memory := executor.Wall{Name: "memory", Stands: e.cgroups.HoldsMemory(), Proof: "memory.max is written before a process enters"}
	if !memory.Stands {
		memory.Proof = "no memory controller is delegated to the host's cgroup: a script can use all memory of the host"
		memory.Remedy = "delegate the memory controller to the host's cgroup, or " + needsSandbox
	}
	processes := executor.Wall{Name: "processes", Stands: e.cgroups.HoldsProcesses(), Proof: "pids.max is written before a process enters"}
	if !processes.Stands {
		processes.Proof = "no pids controller is delegated to the host's cgroup: a script can start as many processes as the host's user may"
		processes.Remedy = "delegate the pids controller to the host's cgroup, or " + needsSandbox
	}
	return []executor.Wall{
		{Name: "staging", Stands: true, Proof: "the folder of a run is of mode 0700 in a folder that belongs to this user alone; it is removed at the end"},
		seen.environment(),
		seen.descriptors(),
		cleanup,
		memory,
		processes,
		seen.coreFiles(),
		{Name: "files", Proof: "nothing is hidden: a script reads and changes what the host's user may, the files of other runs too", Remedy: needsSandbox},
		{Name: "network", Proof: "nothing is closed: a script reaches what the host reaches", Remedy: needsSandbox},
		{Name: "other processes", Proof: "a script sees the host's processes and may send signals to those of the host's user", Remedy: needsSandbox},
		{Name: "system calls", Proof: "none is filtered", Remedy: needsSandbox},
	}
}
