//go:build linux && (amd64 || arm64)

package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/grant"
)

// The probe is a script of the shell alone: it tries what it must not be able to do,
// and says what it could, with controls that must succeed.
const probe = `
may() { if (eval "$2") >/dev/null 2>&1; then echo "may $1"; else echo "not $1"; fi; }
may write-tmp ': >/tmp/x'
may write-outputs ': >/outputs/x'
may write-root ': >/x'
may write-usr ': >/usr/x'
may write-etc ': >/etc/x'
may write-proc 'echo 1 >/proc/sys/kernel/core_pattern'
may write-init ': >>/init'
may see-memory ': </dev/mem'
may see-shadow ': </etc/shadow'
may see-root 'cd /root'
may see-kernel ': </proc/version'
n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; echo "processes $n"
[ ! -e /proc/version ] || { read -r v </proc/version; echo "kernel $v"; }
while read -r name value; do case $name in Cap*|NoNewPrivs:|Uid:) echo "$name $value";; esac; done </proc/self/status
`

// crowd starts more processes than its limit. A shell that is refused one may wait for 15
// seconds (bash does), unless a signal comes: one of its children sends some that mean nothing.
const crowd = `
sh -c "while kill -CHLD $$; do :; done" & sh -c 'kill -STOP $$' &
echo begun; i=0; while [ $i -lt 32 ]; do sh -c 'kill -STOP $$' & i=$((i+1)); done; echo all
`

// told is what the probe must say.
var told = []string{
	"may write-tmp", "may write-outputs", "not write-root", "not write-usr", "not write-etc", "not write-proc", "not write-init",
	"not see-memory", "not see-shadow", "not see-root",
	"CapInh: " + noRights, "CapPrm: " + noRights, "CapEff: " + noRights, "CapBnd: " + noRights, "CapAmb: " + noRights, "NoNewPrivs: 1",
}

const (
	probeMemory = 96 << 20
	probeTime   = 60 * time.Second
	probeTasks  = 8
)

// prove makes containers whose scripts try what the walls must keep them from, and
// makes the posture of what came of it.
func (e *Executor) prove() error {
	found, err := interpreter.Find(context.Background(), "sh")
	if err != nil {
		return fmt.Errorf("the probe needs a shell: %w", err)
	}
	try := func(script string) (executor.Result, error) {
		return e.run(e.underWay.Closing(), job{
			tenant: "probe", interpreter: found.Interpreter(), kind: found.Kind, argv: []string{found.Path, "-c", script},
			timeout: probeTime, output: 64 << 10, limits: e.limits.Of(probeMemory, probeTasks),
		})
	}
	res, err := try(probe)
	if err != nil {
		return fmt.Errorf("the probe: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	if res.Ending != executor.Exited(0) {
		return fmt.Errorf("the probe: %s: %.500s", res.Ending, res.Stderr)
	}
	for _, want := range told {
		if !slices.Contains(lines, want) {
			return fmt.Errorf("the probe in a container said %q, and not %q", lines, want)
		}
	}
	alone, kernel, tier := "processes 1", "not see-kernel", grant.Sandbox // the first process hides
	if e.engine.name == gvisor {
		alone, kernel, tier = "processes 2", "may see-kernel", grant.Kernel // or cannot
		if err := otherKernel(lines); err != nil {
			return err
		}
	}
	if !slices.Contains(lines, alone) {
		return fmt.Errorf("the probe saw other processes: %q", lines)
	}
	if !slices.Contains(lines, kernel) {
		return fmt.Errorf("the probe in a container said %q, and not %q", lines, kernel)
	}
	if res, err = try("a=0123456789abcdef; while :; do a=$a$a; done"); err != nil || res.Ending != executor.OutOfMemory() {
		return errors.Join(fmt.Errorf("a probe that takes more memory than its limit: %s", res.Ending), err)
	}
	if res, err = try(crowd); err != nil || !strings.HasPrefix(string(res.Stdout), "begun\n") || strings.Contains(string(res.Stdout), "all") {
		return errors.Join(fmt.Errorf("a probe that starts more processes than its limit: %s, %.100q", res.Ending, res.Stdout), err)
	}
	e.posture = executor.Posture{Executor: Name, Tier: tier, Walls: e.walls()}
	return nil
}

// otherKernel holds that the probe was told of another kernel than the host's.
func otherKernel(lines []string) error {
	host, err := os.ReadFile("/proc/version")
	if err != nil {
		return err
	}
	for _, l := range lines {
		if v, ok := strings.CutPrefix(l, "kernel "); ok && v != "" && v != strings.Join(strings.Fields(string(host)), " ") {
			return nil
		}
	}
	return fmt.Errorf("the probe was not told of another kernel than the host's: %q", lines)
}

func (e *Executor) walls() []executor.Wall {
	by := e.engine.name + " " + e.engine.version
	stands := func(name, proof string) executor.Wall {
		return executor.Wall{Name: name, Stands: true, Proof: proof}
	}
	network := "a container has a network namespace of its own, and its filter of system calls knows no sockets but those of the container"
	rights, calls := "each run's are seen from outside", "which each run's is seen to have from outside"
	var more []executor.Wall
	if e.engine.name == gvisor {
		network = "its kernel has no network, and a network namespace of its own on the host; its filter of system calls knows no sockets but those of the container"
		rights, calls = "each run's kernel is seen from outside to have none on the host", "which it has before it says that it is there; its kernel has a filter of its own on the host, which is seen from outside"
		more = []executor.Wall{stands("kernel", "a probe was told of another kernel than the host's, whose process is seen before each run: a user who owns nothing, no rights, an empty root, namespaces and the cgroups of the run")}
	}
	return append([]executor.Wall{
		stands("files", "a probe in a container of "+by+" tried to write the programs, /etc, /proc and its root and to read the host's, and was refused, with controls that succeed"),
		stands("network", network),
		stands("other processes", "a probe saw its own processes alone"),
		stands("privileges", "a probe had no capability and can gain none; "+rights),
		stands("system calls", fmt.Sprintf("the container's first process takes a filter of %d instructions before the script, %s", len(e.filter)/8, calls)),
		stands("memory", "a probe that took more than its limit was killed by its cgroup"),
		stands("processes", "a probe was refused more processes than its limit"),
		stands("processor time", "each run's cgroup limits it"),
	}, more...)
}
