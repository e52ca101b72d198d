//go:build linux && (amd64 || arm64)

package container

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// gvisor is what gVisor's OCI runtime calls itself. A container of it has a kernel of
// its own, a process of the host with no rights, in a root that is empty. It asks
// another process for the files, which sees those of the container alone. What the
// container's processes are is known to that kernel only.
const gvisor = "runsc"

// gvisorCommand is how it is called: cgroups are the host's affair, there is no
// network, and nothing comes between a script and the files of its run.
func gvisorCommand(bundle, state, log, id string) []string {
	return []string{
		gvisor, "--root", state, "--log", log, "--platform=systrap", "--network=none", "--ignore-cgroups", "--directfs=false", "--overlay2=none",
		"--host-uds=none", "run", "--detach", "--bundle", bundle, "--pass-fd", "3:3", id,
	}
}

// forGVisor adds what its kernel must be told, which does not see how the host has
// mounted what a container shows: where it may write, and that there is nothing to
// see below /sys. It says that the machine has as much memory as the run.
func (o order) forGVisor(s *spec, ground string) {
	for _, pl := range o.places() {
		options := []string{"bind", "rw", "nosuid", "nodev"}
		if pl.flags&unix.MOUNT_ATTR_NOEXEC != 0 {
			options = append(options, "noexec")
		}
		s.Mounts = append(s.Mounts, mount{pl.at, "bind", ground + "/files/" + pl.name, options})
	}
	s.Mounts = append(s.Mounts, mount{"/sys", "tmpfs", "tmpfs", []string{"ro", "nosuid", "nodev", "noexec", "mode=000", "size=4k"}})
	s.Linux.Resources = &resources{memory{o.memory}}
}

// kernelTasks is how many more threads of the host gVisor's kernel may need for a run
// of so many processes: some of its own, and some for each of them. It holds the run
// to its number itself, which the probe tries, and breaks down where the host refuses
// it a thread.
func kernelTasks(processes int) int { return 256 + 3*processes }

// kernelID is the user and the group that gVisor's kernel is, in a user namespace in
// which nobody else is.
const kernelID = 65534

// kernelNamespaces are those of gVisor's kernel. Its cgroups are the run's, and its
// processes see those of that kernel.
var kernelNamespaces = slices.DeleteFunc(slices.Clone(namespaces), func(n [2]string) bool { return n[0] == "cgroup" })

// lookAtKernel is lookAtFirst for a container of gVisor: the process that said the first word
// is its kernel. That it said it means that the container's first process has taken
// the filter.
func (e *Executor) lookAtKernel(pid int, _ order, group string) (string, error) {
	var seen strings.Builder
	for _, err := range []error{hasNoRights(&seen, pid, kernelID), hasNamespaces(&seen, pid, kernelNamespaces), e.isLimited(pid, group)} {
		if err != nil {
			return "", fmt.Errorf("the container's kernel: %w", err)
		}
	}
	list, err := mountsOf(pid)
	if err != nil {
		return "", err
	}
	for _, m := range list { // its root, and no file of the host
		if at, options, _ := strings.Cut(m, " "); at != "/" || !slices.Contains(strings.Split(options, ","), "ro") {
			return "", fmt.Errorf("the container's kernel sees %s (%s)", at, options)
		}
	}
	return seen.String() + strings.Join(list, "\n"), nil
}
