package enginecase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// WaitTime guards against hanging alone.
const WaitTime = 3 * time.Minute

// Names are those of the engines.
var Names = []string{"docker", "podman"}

var programs = map[string]string{"docker": "dockerd", "podman": "podman"}

// An Engine has folders, a socket, cgroups and a pid namespace of its own, so that
// nothing of it outlives its first process.
type Engine struct {
	Name  string
	dir   string
	words []string // of the command, which sees the folder at /mnt
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended
}

// New starts the engine of that name, for root, in a folder of its own below dir. Who
// calls it calls [Engine.End].
func New(t testing.TB, name, dir string) *Engine {
	t.Helper()
	e, err := Open(name, dir)
	if errors.Is(err, exec.ErrNotFound) {
		Need(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Open is New for who goes on without it: an error wraps exec.ErrNotFound where it is not
// installed.
func Open(name, dir string) (*Engine, error) {
	if _, err := exec.LookPath(programs[name]); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(dir, name)
	if err != nil {
		return nil, err
	}
	e := &Engine{Name: name, dir: dir}
	switch name {
	case "docker":
		e.words = []string{programs[name], "--data-root", "/mnt/data", "--exec-root", "/mnt/exec", "--pidfile", "/mnt/pid", "--host", "unix:///mnt/socket",
			"--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--cgroup-parent", e.Cgroup()}
	case "podman":
		e.words = []string{programs[name], "--root", "/mnt/data", "--runroot", "/mnt/run", "--tmpdir", "/mnt/tmp", "--network-config-dir", "/mnt/net",
			"--cgroup-manager=cgroupfs", "--events-backend=none", "system", "service", "--time", "0", "unix:///mnt/socket"}
	}
	return e.open()
}

func (e *Engine) open() (*Engine, error) {
	if err := e.Start(); err != nil {
		return nil, errors.Join(err, e.clean(), os.RemoveAll(e.dir))
	}
	return e, nil
}

// Installed ends a test that lacks one of the programs.
func Installed(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Need(t, err)
		}
	}
}

// Need ends a test that lacks what is not there.
func Need(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("TRACON_REQUIRE") == "all" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// Socket is the path at which it listens.
func (e *Engine) Socket() string { return e.dir + "/socket" }

// Address is that as a setting says it.
func (e *Engine) Address() string { return "unix://" + e.Socket() }

// Cgroup is the name of the folder in which Docker keeps its containers' cgroups, in
// every hierarchy.
func (e *Engine) Cgroup() string { return "/tracon-test-" + filepath.Base(e.dir) }

// Start returns when the engine answers. It is called again after [Engine.Kill].
func (e *Engine) Start() error {
	// The numbers of a killed one's processes are those of others now.
	pids, _ := filepath.Glob(e.dir + "/exec/containerd/*.pid")
	for _, name := range append(pids, e.dir+"/pid") {
		_ = os.Remove(name)
	}
	log, err := os.OpenFile(e.dir+"/log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// The OCI runtimes give up where they see both versions of cgroups, and Podman where
	// the paths of its folders are long.
	e.cmd = exec.Command("/bin/sh", slices.Concat([]string{"-ec", `mount -t proc proc /proc; mount --bind "$0" /mnt; umount /sys/fs/cgroup/unified 2>/dev/null || :; exec "$@"`, e.dir}, e.words)...)
	e.cmd.Stdout, e.cmd.Stderr, e.cmd.Dir = log, log, "/"
	e.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/mnt", "XDG_RUNTIME_DIR=/mnt", "TMPDIR=/mnt", "CONTAINERS_CONF=/dev/null"}
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	done := make(chan struct{})
	e.done = done
	begun := make(chan error)
	go func() {
		runtime.LockOSThread() // whose end would be the engine's
		err := e.cmd.Start()
		begun <- err
		if err == nil {
			_ = e.cmd.Wait()
			close(done)
		}
	}()
	if err := <-begun; err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", e.Socket())
	}}}
	for end := time.Now().Add(WaitTime); time.Now().Before(end); {
		select {
		case <-done:
			end = time.Time{}
			continue
		case <-time.After(20 * time.Millisecond):
		}
		r, err := client.Get("http://engine/_ping")
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if string(text) == "OK" {
			return nil
		}
	}
	text, _ := os.ReadFile(e.dir + "/log")
	return errors.Join(fmt.Errorf("%s does not answer: %s", e.Name, text[max(0, len(text)-2000):]), e.Kill())
}

// Kill ends the engine and all that it has started, as a machine that dies would.
func (e *Engine) Kill() error {
	err := e.cmd.Process.Kill()
	<-e.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// End kills the engine, and removes its cgroups and its folder.
func (e *Engine) End() error {
	return errors.Join(e.Kill(), e.clean(), os.RemoveAll(e.dir))
}

// clean removes the cgroups of an engine that has ended. Podman's lie in a folder that
// all Podmans share, where those that are empty are nobody's.
func (e *Engine) clean() error {
	var left []string
	for end := time.Now().Add(WaitTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = nil
		for _, name := range []string{e.Cgroup(), "/libpod_parent"} {
			for _, pattern := range []string{"/sys/fs/cgroup/*" + name, "/sys/fs/cgroup" + name} {
				dirs, _ := filepath.Glob(pattern)
				for _, dir := range dirs {
					removeCgroups(dir)
					if _, err := os.Stat(dir); err == nil && name == e.Cgroup() {
						left = append(left, dir)
					}
				}
			}
		}
		if len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("there is still %q", left)
}

// removeCgroups removes the cgroup and those below it, as far as they are empty.
func removeCgroups(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroups(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir)
}
