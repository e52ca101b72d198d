//go:build linux && (amd64 || arm64)

package container

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// A traitor is an OCI runtime that does something else than its bundle says: the real one,
// with a bundle that was changed. What it does lies in a file, in Python, which sees the
// bundle's configuration as c and the container's root as root.
type traitor struct{ path, does string }

func newTraitor(t *testing.T, name string) traitor {
	t.Helper()
	real, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	r := traitor{filepath.Join(dir, name), filepath.Join(dir, "does")}
	text := `#!/usr/bin/python3 -IS
import json, os, sys
real, does, words = '` + real + `', '` + r.does + `', sys.argv[1:]
if '--bundle' in words and os.path.exists(does):
    file = words[words.index('--bundle') + 1] + '/config.json'
    c = json.load(open(file))
    root = c['root']['path']
    def mounted(at): return [m for m in c['mounts'] if m['destination'] == at][0]
    def without(kind): c['linux']['namespaces'] = [n for n in c['linux']['namespaces'] if n['type'] != kind]
    exec(open(does).read())
    json.dump(c, open(file, 'w'))
os.execv(real, ['` + name + `'] + words)
`
	if err := execfile.Write(r.path, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r traitor) do(t *testing.T, what string) {
	t.Helper()
	if err := os.WriteFile(r.does, []byte(what+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unseen makes the host not look at a container before it lets the script start, so that
// it is the probe that finds what is missing.
func unseen(e *Executor) {
	e.look = func(int, order, string) (string, error) { return "", nil }
}

// What OCI runtimes do in place of what they are told.
const (
	noNetwork = `without('network')`
	noQueues  = `without('ipc')`
	noName    = `without('uts'); del c['hostname']`
	noCgroups = `without('cgroup')`
	noUsers   = `without('user'); del c['linux']['uidMappings'], c['linux']['gidMappings']`
	allRights = `c['process']['capabilities'] = dict.fromkeys(c['process']['capabilities'], ['CAP_SYS_ADMIN', 'CAP_NET_RAW'])`
	aFolder   = `c['mounts'].append({'destination': '/var', 'type': 'bind', 'source': '/var', 'options': ['rbind', 'ro', 'nosuid']})`
	programs  = `assert os.system('mount -o remount,bind,rw,nosuid,nodev ' + root + '/usr') == 0`
	allOfProc = `mounted('/proc')['options'].remove('subset=pid')`
	noHiding  = `mounted('/proc')['options'].remove('hidepid=2')`
	noLimits  = `c['process']['rlimits'] = []`
	// One that everybody may open, under the name of another.
	aDevice = `
assert os.system('mount -t tmpfs none /mnt && mknod -m 666 /mnt/device c 1 8') == 0
c['mounts'].append({'destination': '/dev/kmsg', 'type': 'bind', 'source': '/mnt/device', 'options': ['bind', 'nosuid']})
`
	// It leaves the cgroups of the run, in whatever hierarchy.
	leaving = `
for line in open('/proc/self/cgroup').read().split('\n')[:-1]:
    _, names, _ = line.split(':')
    kind, options = ('cgroup', '-o ' + names) if names else ('cgroup2', '')
    if os.system('mount -t %s %s none /mnt 2>/dev/null' % (kind, options)) == 0:
        open('/mnt/cgroup.procs', 'w').write('0')
        os.system('umount /mnt')
`
	moreSpace = `
assert os.system('mount -o remount,size=1g,nr_inodes=100000 ' + root[:-5] + '/files') == 0
m = mounted('/dev/shm')
m['options'] = [o for o in m['options'] if o[:5] not in ('size=', 'nr_in')]
`
)

// B2: for each wall, a container that lacks it alone, as the OCI runtime did something
// else, is found out: by the probe, whose attempt succeeds then and only then, or by the
// look from outside, or by both.
func TestKnockOut(t *testing.T) {
	if os.Geteuid() != 0 {
		return // without root there is no executor: see asRoot
	}
	for _, engine := range triedRuntimes() {
		for _, tc := range []struct {
			name, does string
			probe      string // what the probe says; empty: another wall holds
			outside    string // what the look from outside says; empty: it cannot be seen
		}{
			{"none", ``, "", ""},
			{"the root for reading", `c['root']['readonly'] = False`, "", "/ can be written to"},
			{"the programs for reading", programs, "", "/usr can be written to"},
			{"a folder of the host", aFolder, "", "something is mounted at /var"},
			{"a device", aDevice, "", "something is mounted at /dev/kmsg"},
			{"network namespace", noNetwork, "", "it has no network namespace of its own"},
			{"ipc namespace", noQueues, "", "it has no ipc namespace of its own"},
			{"uts namespace", noName, "", "it has no uts namespace of its own"},
			{"cgroup namespace", noCgroups, "", "it has no cgroup namespace of its own"},
			{"user namespace", noUsers, `and not "may write-tmp"`, "its Uid is"},
			{"another user", `c['process']['user'] = {'uid': 0, 'gid': 0}`, `and not "may write-tmp"`, "its Uid is"},
			{"more groups", `c['process']['user']['additionalGids'] = [0]`, "", `its Groups is`},
			{"capabilities", allRights, `and not "CapInh: `, "its CapInh is"},
			{"no new privileges", `c['process']['noNewPrivileges'] = False`, "", ""}, // the first process takes that itself
			{"the kernel's files", allOfProc, "not see-kernel", ""},
			{"the first process", noHiding, "the probe saw other processes", ""},
			{"/proc for reading", `mounted('/proc')['options'].remove('ro')`, "", "/proc can be written to"},
			{"limits", noLimits, "", `its limit "Max`},
			{"cgroups", leaving, "", "cgroups of its run"},
		} {
			t.Run(engine+"/"+tc.name, func(t *testing.T) {
				r := newTraitor(t, engine)
				r.do(t, tc.does)
				try := func(change func(*Executor)) string {
					t.Helper()
					e, err := open(Config{Engine: r.path, Runtime: filepath.Join(t.TempDir(), "run")}, change)
					if err != nil {
						if !errors.Is(err, ErrWall) || e != nil {
							t.Errorf("got %v, want an error that wraps ErrWall", err)
						}
						return err.Error()
					}
					if err := e.Close(); err != nil {
						t.Error(err)
					}
					return ""
				}
				alone := tc.probe != "" || tc.outside == "" || !testing.Short()
				if alone && tc.name != "cgroups" { // without which the probe would take the host's memory
					if said := try(unseen); (tc.probe == "") != (said == "") || !strings.Contains(said, tc.probe) {
						t.Errorf("the probe says %q, want %q", said, tc.probe)
					}
				}
				want := tc.outside
				if want == "" {
					want = tc.probe
				}
				if said := try(func(*Executor) {}); (want == "") != (said == "") || !strings.Contains(said, want) {
					t.Errorf("with the look from outside, %q is said, want %q", said, want)
				}
			})
		}
	}
}

// triedRuntimes are those that share the host's kernel.
func triedRuntimes() []string {
	if hostcase.Full() {
		return []string{"crun", "runc"}
	}
	return []string{"crun"}
}
