package enginecase

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// An ordinary user who is nobody of this machine, and the first of 65,536 identities
// that such a user is given by Debian.
const (
	ordinary = 54_321
	given    = 231_072
)

// Rootless starts Podman as an ordinary user, as New does. Without identities, those in
// /etc/subuid and /etc/subgid, that user has no others than its own.
func Rootless(t testing.TB, dir string, identities bool) *Engine {
	t.Helper()
	Installed(t, programs["podman"], "newuidmap", "setpriv")
	e, err := rootless(dir, identities)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func rootless(dir string, identities bool) (*Engine, error) {
	dir, err := os.MkdirTemp(dir, "rootless")
	if err != nil {
		return nil, err
	}
	id := strconv.Itoa(ordinary)
	e := &Engine{Name: "podman", dir: dir, words: []string{"/bin/sh", "-ec", `mount --bind /mnt/etc /etc; exec "$@"`, "sh",
		"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "env", "HOME=/mnt/home", "XDG_RUNTIME_DIR=/mnt/home/run",
		programs["podman"], "--cgroup-manager=cgroupfs", "--events-backend=none", "system", "service", "--time", "0", "unix:///mnt/socket"}}
	etc := map[string]string{
		"passwd": "root:x:0:0::/:/bin/sh\nordinary:x:" + id + ":" + id + "::/mnt/home:/bin/sh\n", "group": "root:x:0:\nordinary:x:" + id + ":\n",
		"nsswitch.conf": "passwd: files\ngroup: files\n", "subuid": "", "subgid": "",
	}
	if identities {
		etc["subuid"] = fmt.Sprintf("ordinary:%d:65536\n", given)
		etc["subgid"] = etc["subuid"]
	}
	errs := []error{os.CopyFS(dir+"/etc/containers", os.DirFS("/etc/containers")), os.MkdirAll(dir+"/home/run", 0o700)}
	for name, text := range etc {
		errs = append(errs, os.WriteFile(filepath.Join(dir, "etc", name), []byte(text), 0o644))
	}
	for _, name := range []string{"", "home", "home/run"} {
		errs = append(errs, os.Chown(filepath.Join(dir, name), ordinary, ordinary))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return e.open()
}
