//go:build linux && (amd64 || arm64)

package engine_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// A change is what an engine makes of a container in place of what it is told.
type change func(create map[string]any)

// by sets members of what the interface calls the configuration of the host; nil takes
// one away.
func by(members map[string]any) change {
	return func(create map[string]any) {
		for name, value := range members {
			create["HostConfig"].(map[string]any)[name] = value
		}
	}
}

func all(changes ...change) change {
	return func(create map[string]any) {
		for _, c := range changes {
			c(create)
		}
	}
}

// secured changes the options of security: those with the prefix go, and more come.
func secured(prefix string, more ...any) change {
	return func(create map[string]any) {
		h := create["HostConfig"].(map[string]any)
		options, _ := h["SecurityOpt"].([]any)
		h["SecurityOpt"] = append(slices.DeleteFunc(slices.Clone(options), func(o any) bool { return strings.HasPrefix(o.(string), prefix) }), more...)
	}
}

// mounted changes the options of a file system in memory.
func mounted(dir, old, new string) change {
	return func(create map[string]any) {
		list := create["HostConfig"].(map[string]any)["Tmpfs"].(map[string]any)
		list[dir] = strings.Replace(list[dir].(string), old, new, 1)
	}
}

func asRoot(create map[string]any) { create["User"] = "0:0" }

// sized has file systems in memory hold a GiB, and as many files as go in.
func sized(create map[string]any) {
	list := create["HostConfig"].(map[string]any)["Tmpfs"].(map[string]any)
	for dir, options := range list {
		if words := strings.Split(options.(string), ","); words[0] == "rw" {
			words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "size=") || strings.HasPrefix(w, "nr_inodes=") })
			list[dir] = strings.Join(append(words, "size=1g"), ",")
		}
	}
}

var (
	nothing    = func(map[string]any) {}
	allRights  = by(map[string]any{"CapDrop": nil, "CapAdd": []any{"ALL"}})
	ofTheHost  = all(by(map[string]any{"NetworkMode": "host"}), func(create map[string]any) { create["NetworkDisabled"] = false })
	unfiltered = secured("seccomp", "seccomp=unconfined")
	aDevice    = by(map[string]any{"Devices": []any{map[string]any{"PathOnHost": "/dev/random", "PathInContainer": "/dev/kmsg", "CgroupPermissions": "rwm"}}})
	unmasked   = all(by(map[string]any{"MaskedPaths": []any{}}), secured("mask="), secured("proc-opts="))
	noMemory   = by(map[string]any{"Memory": 0, "MemorySwap": 0})
	noLimits   = by(map[string]any{"Ulimits": nil})
)

// B2: for each wall, a container that lacks it alone, as the engine did something else
// than it was told, is found out: by the probe, whose attempt succeeds then and only
// then, or by the look at what its first process tells, or by both.
func TestKnockOut(t *testing.T) {
	if !withEngines(t) {
		return
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	network := "a probe has" // a route or an interface
	if len(interfaces) < 2 {
		network = "" // this host has none but its own loopback: there is nothing to see
	}
	for _, tc := range []struct {
		name  string
		does  change
		probe string // what the probe says; empty: another wall holds
		look  string // what the look says; empty: it cannot be seen
	}{
		{"none", nothing, "", ""},
		{"the root for reading", by(map[string]any{"ReadonlyRootfs": false}), "", "/ can be written to"},
		{"a folder of the host", by(map[string]any{"Binds": []any{"/var:/host:ro"}}), "", "something is mounted at /host"},
		{"a device", aDevice, "opening /dev/kmsg", ""},
		{"network", ofTheHost, network, ""},
		{"processes of the host", by(map[string]any{"PidMode": "host"}), "", `first process of the container said nothing`}, // it is not the first there, and ends
		{"memory of the host", by(map[string]any{"IpcMode": "host", "ShmSize": 0}), "", "/dev/shm"},
		{"another user", asRoot, "a probe tried opening /dev/x", "its Uid is"},
		{"more groups", by(map[string]any{"GroupAdd": []any{"0"}}), "", "it is in the groups"},
		{"capabilities", allRights, "", "its Cap"},
		{"every privilege", by(map[string]any{"Privileged": true}), "", "its Cap"}, // of devices a host has others
		{"no new privileges", secured("no-new-privileges"), "", "its NoNewPrivs is"},
		{"masked files", unmasked, "which tells of the host", ""},
		{"memory", noMemory, "a probe that took more memory than its limit", "no cgroup holds its memory"},
		{"processes", by(map[string]any{"PidsLimit": nil}), "", "no cgroup holds its processes"},
		{"processor time", by(map[string]any{"NanoCpus": 0}), "", "no cgroup holds its processor time"},
		{"limits", noLimits, "", `its limit "Max`},
		{"space", mounted("/tmp", "size=", "size=1"), "", "/tmp holds more than"},
		{"programs in /tmp", mounted("/tmp", "noexec", "exec"), "", "/tmp has programs"},
		{"set-user-id programs", mounted("/skill", "nosuid", "suid"), "", "/skill is mounted with"},
		{"devices in /skill", mounted("/skill", "nodev", "dev"), "", "/skill is mounted with"},
	} {
		for _, name := range names {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				p := stand(t, engineOf(t, name))
				p.alters(tc.does)
				config := engine.Config{Address: p.address(), Runtime: filepath.Join(t.TempDir(), "run")}
				try := func(make func(engine.Config) (*engine.Executor, error)) string {
					t.Helper()
					e, err := make(config)
					if err != nil {
						if !errors.Is(err, engine.ErrWall) && !errors.Is(err, engine.ErrEngine) || e != nil {
							t.Errorf("got %v", err)
						}
						return err.Error()
					}
					if err := e.Close(); err != nil {
						t.Error(err)
					}
					return ""
				}
				if tc.probe != "" || tc.look == "" {
					if said := try(engine.NewUnseen); (tc.probe == "") != (said == "") || !strings.Contains(said, tc.probe) {
						t.Errorf("the probe says %q, want %q", said, tc.probe)
					}
				}
				if tc.look != "" {
					if said := try(engine.New); !strings.Contains(said, tc.look) {
						t.Errorf("what a container tells: %q is said, want %q", said, tc.look)
					}
				}
			})
		}
	}
}

// Z01, Z04 to Z06: in a container that lacks one wall, as the engine did something else,
// and at which nobody looks, the cases that are there for that wall turn red.
func TestHostileKnockOut(t *testing.T) {
	if !withEngines(t) {
		return
	}
	shared, err := os.MkdirTemp("/var/tmp", "tracon-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(shared); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	shown := func(how string) change { return by(map[string]any{"Binds": []any{shared + ":" + shared + ":" + how}}) }
	for _, tc := range []struct {
		name   string
		does   change
		filter bool // whether each script takes it
		red    string
	}{
		{"Z01 system calls", unfiltered, false, "K01 K03 K08 K10 N03 X09 X11 X14"},
		{"a folder of the host", shown("ro"), true, "F01 F02 F04"},
		{"a folder of the host, for writing", shown("rw"), true, "F06 F12"},
		{"Z04 the network", all(ofTheHost, unfiltered), false, "N01 X12"},
		{"a device", aDevice, true, "F07"},
		{"capabilities", allRights, true, "X07"},
		{"masked files", unmasked, true, "U11"},
		{"the space", sized, true, "F14"},
		{"memory", noMemory, true, "R03"},
		{"limits", noLimits, true, "R13"},
	} {
		for _, name := range names {
			_, cases := hostcase.Attacks(t, modelled[name], false)
			red := slices.DeleteFunc(strings.Fields(tc.red), func(id string) bool { return !slices.Contains(cases, id) })
			if len(red) == 0 {
				continue // these are shown with the other engine, or show something with this one that is no harm
			}
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				p := stand(t, engineOf(t, name))
				e := open(t, engineOf(t, name), engine.Config{Address: p.address()})
				if engine.Unsee(e); !tc.filter { // when all was proved, so that nothing stops it
					engine.Unfilter(e)
				}
				p.alters(tc.does)
				hostile.KnockOut(t, hostile.Setup{
					New: func(executortest.T) executor.Executor { return e }, Interpreters: interpreters(t), Only: red, Folder: shared,
				})
			})
		}
	}
}
