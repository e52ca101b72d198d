package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	enginerun "github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/enginecase"
	"github.com/tracon-go/tracon/internal/rootfs"
	"golang.org/x/sys/unix"
)

// A contestant starts the same script, with the same interpreter, options and
// environment.
type contestant struct {
	name  string
	walls string // what it walls off as it is called here
	run   func() error
	took  []time.Duration
}

// A start is what all contestants start.
type start struct {
	dir  string // with the script in it; the working directory
	argv []string
	env  []string
}

// A script is what the executors among them are asked to run.
type script struct {
	by        gate.Interpreter
	ext, text string
}

// rest is between two starts, so that none is measured with what another one left
// to be done: a box, the making of the next.
const rest = 10 * time.Millisecond

// BenchmarkStart compares how long a script that does nothing takes from the call
// to its end: bare, in a box, and in what else walls programs off. The contestants
// take turns, so that noise meets all alike, and each time another one is first.
// "half" is the median as a ratio to bare, and "quarter" what a quarter of the
// runs were faster than.
func BenchmarkStart(b *testing.B) {
	started := map[string]*enginecase.Engine{}
	b.Cleanup(func() {
		for _, e := range started {
			if err := e.End(); err != nil {
				b.Error(err)
			}
		}
	})
	for _, tc := range []struct{ name, ext, text string }{{"sh", "sh", "true\n"}, {"python", "py", "pass\n"}, {"node", "js", "0\n"}} {
		b.Run(tc.name, func(b *testing.B) {
			found, err := interpreter.Find(b.Context(), tc.ext)
			if err != nil {
				b.Fatal(err)
			}
			s := start{dir: b.TempDir(), env: []string{"PATH=" + interpreter.SearchPath, "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=UTC"}}
			s.argv = append(interpreter.Command(tc.ext, found.Path), "main."+tc.ext)
			if err := os.WriteFile(filepath.Join(s.dir, "main."+tc.ext), []byte(tc.text), 0o644); err != nil {
				b.Fatal(err)
			}
			if err := os.Chmod(s.dir, 0o755); err != nil { // a container's user must enter it
				b.Fatal(err)
			}
			what := script{found.Interpreter(), tc.ext, tc.text}
			all := []*contestant{s.bare(), boxed(b, "box", 0, what), boxed(b, "box-cold", -1, what)}
			others := []func(*testing.B) (*contestant, error){s.bubblewrap, s.oci("crun"), s.oci("runc")}
			for _, name := range []string{"crun", "runc", "runsc"} {
				others = append(others, contained(name, what))
			}
			for _, name := range enginecase.Names {
				others = append(others, engined(started, name, what))
			}
			for _, other := range others {
				c, err := other(b)
				if err == nil {
					err = c.run()
				}
				switch {
				case err == nil:
					all = append(all, c)
				case errors.Is(err, exec.ErrNotFound) && os.Getenv("TRACON_REQUIRE") == "all":
					b.Fatal(err)
				default:
					b.Logf("left out: %v", err)
				}
			}
			for i := 0; b.Loop(); i++ {
				for k := range all {
					c := all[(i+k)%len(all)]
					begin := time.Now()
					if err := c.run(); err != nil {
						b.Fatalf("%s: %v", c.name, err)
					}
					c.took = append(c.took, time.Since(begin))
					time.Sleep(rest)
				}
			}
			b.ReportMetric(0, "ns/op") // of all together: it says nothing
			report(b, all)
		})
	}
}

// report prints the ratios to the first of them.
func report(b *testing.B, all []*contestant) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nstarted by\tx bare\tat best\tmilliseconds\twhat it walls off\n")
	var bare [2]float64
	for i, c := range all {
		slices.Sort(c.took)
		half, quarter := float64(c.took[len(c.took)/2])/1e6, float64(c.took[len(c.took)/4])/1e6
		if i == 0 {
			bare = [2]float64{half, quarter}
		}
		b.ReportMetric(half/bare[0], c.name+"-half")
		b.ReportMetric(quarter/bare[1], c.name+"-quarter")
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.1f\t%s\n", c.name, half/bare[0], quarter/bare[1], half, c.walls)
	}
	w.Flush()
	b.Log(table.String())
}

func (s start) command(argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (s start) bare() *contestant {
	return &contestant{name: "os-exec", walls: "nothing", run: func() error { return s.command(s.argv...) }}
}

// boxed runs the script in a box: one that was made ahead of the call, as all are
// whose tenant calls often, or none (ahead is -1), one that is made for it.
func boxed(b *testing.B, name string, ahead int, what script) *contestant {
	b.Helper()
	e, err := sandbox.New(sandbox.Config{Ahead: ahead})
	if err != nil {
		b.Fatal(err)
	}
	return executed(b, contestant{
		name:  name,
		walls: "7 namespaces, new root, no network, no capabilities, seccomp list, Landlock, cgroups; private copy of the skill; seen from outside before the script starts",
	}, e, what)
}

// contained runs the script in a container that this OCI runtime makes.
func contained(name string, what script) func(*testing.B) (*contestant, error) {
	return func(b *testing.B) (*contestant, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, err
		}
		if os.Geteuid() != 0 {
			return nil, fmt.Errorf("containers of %s: this is not root", name)
		}
		e, err := container.New(container.Config{Engine: path})
		if err != nil {
			return nil, err
		}
		c := contestant{name: "container-" + name, walls: "as a box, without Landlock"}
		if name == "runsc" {
			c.walls = "a kernel of its own, which has no rights on the host; what a box has, in it and around it"
		}
		return executed(b, c, e, what), nil
	}
}

// engined runs the script in a container that the engine of this name makes, which is
// started where it is not among those that are. It shows no program of the host, so it has
// a copy of the interpreter in a runtime.
func engined(started map[string]*enginecase.Engine, name string, what script) func(*testing.B) (*contestant, error) {
	return func(b *testing.B) (*contestant, error) {
		if os.Geteuid() != 0 {
			return nil, fmt.Errorf("containers of %s: this is not root", name)
		}
		if started[name] == nil {
			of, err := enginecase.Open(name, "")
			if err != nil {
				return nil, err
			}
			started[name] = of
		}
		dir := b.TempDir()
		root, patterns := filepath.Join(dir, "root"), []string{what.by.Path}
		if what.ext == "py" {
			patterns = rootfs.Python
		}
		if err := errors.Join(os.Mkdir(root, 0o755), rootfs.Make(root, patterns...)); err != nil {
			return nil, err
		}
		store := image.New(filepath.Join(dir, "images"))
		made, err := store.ImportFolder(b.Context(), root, image.Limits{})
		if err != nil {
			return nil, err
		}
		defer made.Image.Close()
		found, err := interpreter.Inside(what.ext, "copy", made.Image, "")
		if err != nil {
			return nil, err
		}
		what.by = found.Interpreter()
		e, err := enginerun.New(enginerun.Config{Address: started[name].Address(), Runtime: filepath.Join(dir, "run"), Images: store, Ready: []bundle.Digest{made.Digest}})
		if err != nil {
			return nil, err
		}
		return executed(b, contestant{name: "container-" + name, walls: "as a box, without Landlock and user namespace; no folder of the host"}, e, what), nil
	}
}

// executed has an executor run the script, and closes it at the end.
func executed(b *testing.B, c contestant, e interface {
	executor.Executor
	io.Closer
}, what script) *contestant {
	b.Helper()
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	req, err := executortest.NewWorld(map[string]gate.Interpreter{what.ext: what.by}).Admit(b.Context(), executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main." + what.ext, Data: []byte(what.text)}},
		Script: "main." + what.ext, Mode: gate.Argv,
	})
	if err != nil {
		b.Fatal(err)
	}
	c.run = func() error {
		res, err := e.Execute(b.Context(), req)
		if err == nil && res.Ending != executor.Exited(0) {
			err = fmt.Errorf("it ended with %v: %s", res.Ending, res.Stderr)
		}
		return err
	}
	for range 2 { // whoever calls for the first time is not expected
		if err := c.run(); err != nil {
			b.Fatal(err)
		}
	}
	return &c
}

// bubblewrap has the namespaces and mounts of a box.
func (s start) bubblewrap(*testing.B) (*contestant, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, err
	}
	argv := append([]string{
		path, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/alternatives", "/etc/alternatives", "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", s.dir, "/skill", "--chdir", "/skill",
	}, s.argv...)
	return &contestant{
		name: "bubblewrap", walls: "7 namespaces, new root, no network, no capabilities; no seccomp, Landlock, cgroups",
		run: func() error { return s.command(argv...) },
	}, nil
}

// oci runs the script by a runtime of containers.
func (s start) oci(name string) func(*testing.B) (*contestant, error) {
	return func(b *testing.B) (*contestant, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, err
		}
		if os.Geteuid() != 0 {
			return nil, fmt.Errorf("%s: it needs a user namespace with many identities where this is not root", name)
		}
		folder := b.TempDir()
		if err := s.writeBundle(folder, name); err != nil {
			return nil, err
		}
		within, err := withoutUnified()
		if err != nil {
			return nil, err
		}
		b.Cleanup(func() { close(within) })
		n := 0
		run := func() (err error) {
			n++
			done := make(chan struct{})
			within <- func() {
				defer close(done)
				err = s.command(path, "run", "--bundle", folder, fmt.Sprintf("tracon-bench-%d-%d", os.Getpid(), n))
			}
			<-done
			return err
		}
		return &contestant{
			name: name, walls: "6 namespaces, new root, no network, no capabilities, cgroups; no user namespace, seccomp, Landlock", run: run,
		}, nil
	}
}

// writeBundle writes what a runtime of containers reads: a root of the host's
// programs, as that of a box.
func (s start) writeBundle(folder, name string) error {
	root := filepath.Join(folder, "rootfs")
	for _, dir := range []string{"usr", "proc", "dev", "tmp", "skill"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for _, dir := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+dir, filepath.Join(root, dir)); err != nil {
			return err
		}
	}
	type object = map[string]any
	mount := func(to, kind, from string, options ...string) object {
		return object{"destination": to, "type": kind, "source": from, "options": options}
	}
	var namespaces []object
	for _, kind := range []string{"pid", "mount", "network", "ipc", "uts", "cgroup"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	config, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": 65534, "gid": 65534}, "args": s.argv, "env": s.env, "cwd": "/skill", "noNewPrivileges": true,
		},
		"root": object{"path": "rootfs", "readonly": true},
		"mounts": []object{
			mount("/proc", "proc", "proc", "nosuid", "nodev", "noexec"), mount("/dev", "tmpfs", "tmpfs", "nosuid", "noexec", "mode=755"),
			mount("/tmp", "tmpfs", "tmpfs", "nosuid", "nodev", "noexec"), mount("/usr", "bind", "/usr", "rbind", "ro", "nosuid", "nodev"),
			mount("/skill", "bind", s.dir, "bind", "nosuid", "nodev"),
		},
		"linux": object{
			"namespaces": namespaces, "cgroupsPath": fmt.Sprintf("/tracon-bench-%s-%d", name, os.Getpid()),
			"resources": object{"memory": object{"limit": 256 << 20}, "pids": object{"limit": 64}, "cpu": object{"quota": 100_000, "period": 100_000}},
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "config.json"), config, 0o644)
}

// withoutUnified returns a thread of which what is started sees no cgroups of
// version 2 where there are those of version 1 too: runtimes of containers refuse
// a host that has both. It ends when the channel is closed.
func withoutUnified() (chan<- func(), error) {
	jobs, ready := make(chan func()), make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: it is of no other use any more
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Unmount("/sys/fs/cgroup/unified", unix.MNT_DETACH)
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) { // this host has one kind alone
				err = nil
			}
		}
		ready <- err
		if err == nil {
			for job := range jobs {
				job()
			}
		}
	}()
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("a mount namespace for runtimes of containers: %w", err)
	}
	return jobs, nil
}
