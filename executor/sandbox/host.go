//go:build linux && (amd64 || arm64)

package sandbox

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tracon-go/tracon/executor/internal/calls"
	"golang.org/x/sys/unix"
)

// A setup is what all boxes of an executor have in common. It does not change.
type setup struct {
	layout     layout
	landlock   landlock
	filter     []byte // as the kernel reads it
	loopback   []byte // that of boxes with loopback
	asks       bool   // the filter asks the host what to answer to sockets
	lastCap    int    // the last capability that the kernel knows
	namespaces map[string]string

	alter   func(*program) // called for each program
	settle  bool           // every box waits for its call, also where the call waits for the box
	inspect func(x *expectation, pid int) (*posture, error)
}

// newSetup learns what the kernel has, and where the host's programs are.
func newSetup(folders []string) (*setup, error) {
	s := &setup{
		namespaces: map[string]string{},
		alter:      func(*program) {}, inspect: (*expectation).inspect,
	}
	s.ask(true)
	s.loopback = calls.Loopback().Filter()
	var err error
	if s.landlock, err = findLandlock(createRuleset); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWall, &StepError{string(stageLandlock), err, remedies[stageLandlock]})
	}
	if s.layout, err = hostLayout(folders); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if s.lastCap, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || s.lastCap < 0 || s.lastCap > 63 {
		return nil, fmt.Errorf("sandbox: the last capability of the kernel is %q", text)
	}
	for _, kind := range namespaceKinds {
		if s.namespaces[kind], err = os.Readlink("/proc/self/ns/" + kind); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrWall, &StepError{"finding the " + kind + " namespace of the host", err, "use a kernel that has them all"})
		}
	}
	return s, nil
}

// ask makes the filter ask the host about sockets, or refuse them by itself.
func (s *setup) ask(host bool) {
	s.asks = host
	sockets := calls.NoFamily
	if host {
		sockets = calls.AskHost
	}
	s.filter = calls.Base(sockets).Filter()
}

// within lowers limits to our own.
func (s *setup) within(list []rlimit) []rlimit {
	for i, r := range list {
		var own unix.Rlimit
		if err := unix.Getrlimit(r.what, &own); err == nil {
			list[i].limit = min(r.limit, own.Max)
		}
	}
	return list
}

// newName returns a name that no other run has.
func newName() string { return rand.Text() }

// expect returns what the box of r must look like, in n cgroups of its own.
func (s *setup) expect(r *staged, n int) *expectation {
	id := r.order.hostID
	status := map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "Threads": "1", "Umask": "0077"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		status[set] = "0000000000000000"
	}
	if own := r.order.id; own >= 0 {
		id = [2]int{own, own}
		status["Groups"] = ""
	}
	filter, _ := s.filterOf(r.order.frame)
	stdout, stderr := r.streams.Writers()
	x := &expectation{
		status: status, namespaces: s.namespaces, cgroup: r.hull.group.Path, cgroups: n, program: r.program, rlimits: r.order.rlimits,
		users: id[0], groups: id[1], landlock: s.landlock.abi, filter: filter, streams: [3]*os.File{r.stdin, stdout, stderr},
		mounts: map[string]uint64{
			"/":     attrClosed | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY,
			"/proc": attrClosed | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY,
		},
	}
	l := s.layoutOf(r.order.frame)
	for _, b := range l.binds {
		x.mounts[b.path] = b.flags
		if b.folder && l.image == nil {
			x.deep = append(x.deep, b.path)
		}
	}
	for _, d := range l.devices {
		x.mounts[d] = attrDevice
	}
	for _, p := range places(r.order.taken) {
		x.mounts[p.at] = p.flags
	}
	return x
}

// remedies say what to do where a stage fails.
var remedies = map[stage]string{
	stageIdentity:   "give the host the capabilities SETUID and SETGID, or run it as an ordinary user",
	stageUserNS:     "allow user namespaces: sysctl user.max_user_namespaces=15000, on Debian kernel.unprivileged_userns_clone=1, in a container a seccomp profile that allows unshare and clone",
	stageIDMap:      "allow user namespaces to ordinary users: on Ubuntu sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with \"userns\" for the host's program",
	stageNamespaces: "allow namespaces to ordinary users: on Ubuntu sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with \"userns\" for the host's program; and see that user.max_net_namespaces and its like are not used up",
	stageRoot:       "allow mounts in user namespaces: on Ubuntu sysctl kernel.apparmor_restrict_unprivileged_userns=0, in a container an AppArmor profile that allows mount",
	stageHostFiles:  "see that everybody can read the folder: a host that is root is no longer root when it shows it",
	stageProc:       "a container hides parts of its /proc, and so may show no other: start it with an unmasked one (Docker: --security-opt systempaths=unconfined; Kubernetes: procMount: Unmasked)",
	stageProgram:    "a script sees the host's /usr alone, or its runtime: name the interpreter's folder (the setting folders, or Config.Folders), or use an interpreter below /usr",
	stageLandlock:   "use Linux 6.2 or later with CONFIG_SECURITY_LANDLOCK, and have \"landlock\" in the list of the boot parameter lsm=",
	stageSeccomp:    "use a kernel with CONFIG_SECCOMP_FILTER",
	stageFiles:      "raise the limit of memory, which the files count to",
	stageLimits:     "raise the host's own limits (ulimit -H)",
	stageCgroup:     "delegate the cgroup to the host's user",
}
