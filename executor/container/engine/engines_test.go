//go:build linux && (amd64 || arm64)

package engine_test

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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/rootfs"
)

// waitTime guards against hanging alone.
const waitTime = 3 * time.Minute

// A daemon is an engine of the tests: with folders, a socket, cgroups and a pid
// namespace of its own, so that nothing of it outlives its first process.
type daemon struct {
	name, dir string
	words     []string // of the command, in the folder
	cmd       *exec.Cmd
	done      chan struct{} // closed when it has ended
}

// daemons are those that tests may start: Docker and Podman, by name.
func newDaemon(name, dir string) *daemon {
	d := &daemon{name: name, dir: dir}
	switch name {
	case "docker":
		d.words = []string{"dockerd", "--data-root", "/mnt/data", "--exec-root", "/mnt/exec", "--pidfile", "/mnt/pid", "--host", "unix:///mnt/socket",
			"--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--cgroup-parent", d.cgroup()}
	case "podman":
		d.words = []string{"podman", "--root", "/mnt/data", "--runroot", "/mnt/run", "--tmpdir", "/mnt/tmp", "--network-config-dir", "/mnt/net",
			"--cgroup-manager=cgroupfs", "--events-backend=none", "system", "service", "--time", "0", "unix:///mnt/socket"}
	}
	return d
}

func (d *daemon) socket() string  { return d.dir + "/socket" }
func (d *daemon) address() string { return "unix://" + d.socket() }
func (d *daemon) cgroup() string  { return "/tracon-test-" + filepath.Base(d.dir) }

// start returns when the engine answers.
func (d *daemon) start() error {
	// The numbers of a killed one's processes are those of others now.
	pids, _ := filepath.Glob(d.dir + "/exec/containerd/*.pid")
	for _, name := range append(pids, d.dir+"/pid") {
		_ = os.Remove(name)
	}
	log, err := os.OpenFile(d.dir+"/log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// The OCI runtimes give up where they see both versions of cgroups, and Podman where
	// the paths of its folders are long.
	d.cmd = exec.Command("/bin/sh", append([]string{"-ec", `mount -t proc proc /proc; mount --bind "$0" /mnt; umount /sys/fs/cgroup/unified 2>/dev/null || :; exec "$@"`, d.dir}, d.words...)...)
	d.cmd.Stdout, d.cmd.Stderr, d.cmd.Dir = log, log, "/"
	d.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/mnt", "XDG_RUNTIME_DIR=/mnt", "CONTAINERS_CONF=/dev/null"}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	done := make(chan struct{})
	d.done = done
	begun := make(chan error)
	go func() {
		runtime.LockOSThread() // whose end would be the engine's
		err := d.cmd.Start()
		begun <- err
		if err == nil {
			_ = d.cmd.Wait()
			close(done)
		}
	}()
	if err := <-begun; err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socket())
	}}}
	for end := time.Now().Add(waitTime); time.Now().Before(end); {
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
	text, _ := os.ReadFile(d.dir + "/log")
	return errors.Join(fmt.Errorf("%s does not answer: %s", d.name, text[max(0, len(text)-2000):]), d.kill())
}

// kill ends the engine and all that it has started.
func (d *daemon) kill() error {
	err := d.cmd.Process.Kill()
	<-d.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// An installed engine is one that this package's tests share.
var (
	shared   = map[string]*daemon{}
	sharedMu sync.Mutex
	top      string // the folder of all
)

// engineOf returns the shared engine of that name, which runs.
func engineOf(t testing.TB, name string) *daemon {
	t.Helper()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if d := shared[name]; d != nil {
		return d
	}
	d := fresh(t, name, top)
	shared[name] = d
	return d
}

// fresh starts an engine in a folder of its own below dir.
func fresh(t testing.TB, name, dir string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	d := newDaemon(name, dir)
	if _, err := exec.LookPath(d.words[0]); err != nil {
		need(t, err)
	}
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// need ends a test that lacks what is not there.
func need(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("TRACON_REQUIRE") == "all" {
		t.Fatal(err)
	}
	t.Skip(err)
}

func TestMain(m *testing.M) {
	if os.Getenv(hostAddress) != "" {
		fmt.Println(host())
		os.Exit(1)
	}
	var err error
	if top, err = os.MkdirTemp("", "engine"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, d := range shared {
		if err := errors.Join(d.kill(), d.clean()); err != nil {
			fmt.Fprintln(os.Stderr, d.name, err)
			code = 1
		}
	}
	if err := os.RemoveAll(top); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// clean removes the cgroups of an engine that has ended. Podman's lie in a folder that
// all Podmans share, where those that are empty are nobody's.
func (d *daemon) clean() error {
	var left []string
	for end := time.Now().Add(waitTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = nil
		for _, name := range []string{d.cgroup(), "/libpod_parent"} {
			for _, pattern := range []string{"/sys/fs/cgroup/*" + name, "/sys/fs/cgroup" + name} {
				dirs, _ := filepath.Glob(pattern)
				for _, dir := range dirs {
					removeCgroups(dir)
					if _, err := os.Stat(dir); err == nil && name == d.cgroup() {
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

// A shown runtime is one of this machine's programs, in a store of its own.
var aRuntime = sync.OnceValues(func() (r struct {
	store  *image.Store
	digest bundle.Digest
	found  map[string]gate.Interpreter
}, err error) {
	root := filepath.Join(top, "root")
	if err = errors.Join(os.Mkdir(root, 0o755), rootfs.Make(root, append(rootfs.Scripts, rootfs.Python...)...)); err != nil {
		return r, err
	}
	r.store = image.New(filepath.Join(top, "images"))
	made, err := r.store.ImportFolder(context.Background(), root, image.Limits{})
	if err != nil {
		return r, err
	}
	defer made.Image.Close()
	r.digest, r.found = made.Digest, map[string]gate.Interpreter{}
	for _, ext := range []string{"sh", "py"} {
		f, err := interpreter.Inside(ext, "base", made.Image, "")
		if err != nil {
			return r, err
		}
		r.found[ext] = f.Interpreter()
	}
	return r, nil
})
