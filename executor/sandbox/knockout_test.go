//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// without makes boxes lack the steps.
func without(steps func(*step) bool) func(*setup) {
	return func(s *setup) {
		s.alter = func(p *program) { p.steps = slices.DeleteFunc(p.steps, steps) }
	}
}

// withoutStage makes boxes lack what belongs to the stages.
func withoutStage(stages ...stage) func(*setup) {
	return without(func(s *step) bool { return slices.Contains(stages, s.stage) && s.flags&branch == 0 })
}

// withoutNamespace makes boxes share a namespace with the host. The pid namespace
// is not among those that can be left out: the box's end stops all that it sees.
func withoutNamespace(flag uint64, more ...stage) func(*setup) {
	return func(s *setup) {
		withoutStage(more...)(s)
		drop := s.alter
		s.alter = func(p *program) {
			drop(p)
			for _, step := range p.steps {
				if step.flags&branch != 0 {
					step.args[0].n &^= flag
				}
			}
		}
	}
}

// sets matches the step that sets an option of a file system.
func sets(p string) func(*step) bool {
	return func(s *step) bool {
		return s.nr == unix.SYS_FSCONFIG && s.option == p
	}
}

func shows(path string) func(*setup) {
	return func(s *setup) { s.layout.binds = append(s.layout.binds, bind{path, true, attrHost}) }
}

// unseen makes the host not look at a box before it lets the script start, so
// that it is the probe that finds what is missing.
func unseen(change func(*setup)) func(*setup) {
	return func(s *setup) {
		change(s)
		s.inspect = func(*expectation, int) (*posture, error) { return &posture{}, nil }
	}
}

func both(changes ...func(*setup)) func(*setup) {
	return func(s *setup) {
		var alters []func(*program)
		for _, c := range changes {
			c(s)
			alters = append(alters, s.alter)
		}
		s.alter = func(p *program) {
			for _, a := range alters {
				a(p)
			}
		}
	}
}

// B2: for each wall, a box that lacks it alone is found out: by the probe, whose
// attempt succeeds then and only then, or by the look from outside, or by both.
// Where two walls stand behind each other, both are left out to show that the
// probe would notice.
func TestKnockOut(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*setup)
		probe   []string // what the probe says; none: another wall holds
		outside string   // what the look from outside says; empty: it cannot be seen
	}{
		{"none", func(*setup) {}, nil, ""},
		{"none, where the host cannot be asked", func(s *setup) { s.ask(false) }, nil, ""},
		{"system calls", withoutStage(stageSeccomp), []string{
			"network: making a socket of IPv4: it succeeded", "network: making a socket of netlink: it succeeded", "network: making a socket of vsock: it succeeded",
			"system calls: programs without a file: it succeeded", "system calls: keyrings: it succeeded", "a script that tries to mount is not killed",
		}, "Seccomp is \"0\""},
		{"Landlock", withoutStage(stageLandlock), []string{"files, second layer: listing /: it succeeded"}, ""},
		{"user namespaces", both(withoutStage(stageSeccomp), withoutStage(stageNoUserNS)), []string{"privileges: making a user namespace: it succeeded"}, "Seccomp is \"0\""},
		{"a folder of the host", shows("/var"), []string{"files: opening /var: it succeeded"}, ""},
		{"a folder of the host, late", unexpected("/var"), []string{"files: opening /var: it succeeded"}, "there is a mount at /var"},
		{"the root for reading", func(s *setup) {
			both(withoutStage(stageLandlock), without(func(st *step) bool { return st.stage == stagePivot && st.nr == unix.SYS_MOUNT_SETATTR }))(s)
		}, []string{"files: writing into /: it succeeded"}, "the mount at / is not ro"},
		{"the kernel's files", without(sets("subset")), []string{"other processes: looking at the kernel: it succeeded"}, ""},
		{"the first process", both(without(sets("hidepid")), withoutStage(stageHide)), []string{"other processes: looking at the box's first process: it succeeded"}, ""},
		{"the space", without(sets("size")), []string{"disk: writing more than there is space: it succeeded"}, ""},
		{"network namespace", withoutNamespace(unix.CLONE_NEWNET), nil, "it shares our net namespace"},
		{"ipc namespace", withoutNamespace(unix.CLONE_NEWIPC), nil, "it shares our ipc namespace"},
		{"uts namespace", withoutNamespace(unix.CLONE_NEWUTS, stageName), nil, "it shares our uts namespace"},
		{"cgroup namespace", withoutNamespace(unix.CLONE_NEWCGROUP), nil, "it shares our cgroup namespace"},
		{"cgroups", withoutStage(stageCgroup), nil, "cgroups of the run"},
		{"capabilities", withoutStage(stageCaps), nil, "CapBnd is"},
		{"limits", withoutStage(stageLimits), nil, "its limit"},
		{"descriptors", without(func(s *step) bool {
			return s.stage == stageDescs && s.nr == unix.SYS_CLOSE_RANGE && s.args[0].n == programFD+1
		}), nil, "it has the files"},
		{"standard output", without(func(s *step) bool { return s.nr == unix.SYS_DUP3 && s.args[1].n == 1 }), nil, "its file 1 is not that of the call"},
		{"working directory", without(func(s *step) bool { return s.stage == stageWorkDir && s.nr != unix.SYS_UMASK }), nil, "its working directory is /"},
		{"umask", without(func(s *step) bool { return s.nr == unix.SYS_UMASK }), nil, "Umask is"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			try := func(change func(*setup)) string {
				t.Helper()
				e, err := open(Config{Runtime: filepath.Join(t.TempDir(), "run")}, change)
				if err != nil {
					if !errors.Is(err, ErrWall) {
						t.Errorf("got error %v, want one that wraps ErrWall", err)
					}
					return err.Error()
				}
				counts := e.limits.Count()
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if tc.name == "cgroups" && counts == 0 {
					return tc.outside // there are none here to leave out
				}
				return ""
			}
			probed := try(unseen(tc.change))
			for _, want := range tc.probe {
				if !strings.Contains(probed, want) {
					t.Errorf("the probe says %q, want %q", probed, want)
				}
			}
			if tc.name == "limits" && strings.Contains(probed, "processes: starting more processes than its limit: it succeeded") {
				probed = "" // where no cgroup holds them, it is found
			}
			if len(tc.probe) == 0 && probed != "" && tc.name != "cgroups" {
				t.Errorf("the probe says %q", probed)
			}
			seen := try(func(s *setup) {
				tc.change(s)
				s.settle = true // as one that was made ahead
			})
			if tc.outside != "" && !strings.Contains(seen, tc.outside) || tc.outside == "" && len(tc.probe) == 0 && seen != "" {
				t.Errorf("from outside, %q is seen, want %q", seen, tc.outside)
			}
			if seen == "" && (tc.outside != "" || len(tc.probe) > 0) {
				t.Error("a box without the wall was accepted")
			}
		})
	}
}

// R21, B2: the probe of processes finds a limit that is not held, and one that
// lets nothing start. What was started stays: the answer is the same on a host
// that is busy.
func TestProbeOfProcesses(t *testing.T) {
	e, err := open(Config{Runtime: filepath.Join(t.TempDir(), "run")}, func(*setup) {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, tc := range []struct {
		name  string
		limit int
		want  string // of what the probe says
	}{
		{"held", 4, ""},
		{"too high", 40, "starting more processes than its limit: it succeeded"},
		{"too low", 0, "starting a process: resource temporarily unavailable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list := forks(4)
			found, err := e.try(probe{list, e.limit(tc.limit)})
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			if err := found.hold(list); err != nil {
				said = err.Error()
			}
			if (tc.want == "") != (said == "") || !strings.Contains(said, tc.want) {
				t.Errorf("the probe says %q, want %q", said, tc.want)
			}
		})
	}
}

// unexpected shows a folder that the look from outside does not know of.
func unexpected(path string) func(*setup) {
	return func(s *setup) {
		shows(path)(s)
		look := s.inspect
		s.inspect = func(x *expectation, pid int) (*posture, error) {
			delete(x.mounts, path)
			x.deep = slices.DeleteFunc(x.deep, func(d string) bool { return d == path })
			return look(x, pid)
		}
	}
}
