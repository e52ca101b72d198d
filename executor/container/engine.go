//go:build linux && (amd64 || arm64)

package container

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An engine is an OCI runtime.
type engine struct {
	path    string
	name    string // "crun", "runc" or "runsc"
	version string
}

// versionTime is how long an OCI runtime may take to say its version.
const versionTime = 60 * time.Second

// openEngine asks the OCI runtime at the path what it is.
func openEngine(path string) (engine, error) {
	if !filepath.IsAbs(path) {
		return engine{}, fmt.Errorf("container: the OCI runtime %q is not an absolute path; name that of crun, runc or runsc", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.Dir = []string{}, "/"
	text, err := cmd.Output()
	if err != nil {
		return engine{}, fmt.Errorf("%w: asking %s for its version: %w; install it, or name another (crun, runc, runsc)", ErrEngine, path, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	name, version, ok := strings.Cut(line, " version ")
	if !ok || !slices.Contains([]string{"crun", "runc", gvisor}, name) {
		return engine{}, fmt.Errorf("%w: %s says that it is %.60q; this executor drives crun, runc and runsc", ErrEngine, path, line)
	}
	return engine{path: path, name: name, version: version}, nil
}

// command returns how the engine starts the container of the bundle and leaves it
// alone, with descriptor 3 handed on. Folders are paths in the run's namespace.
func (e engine) command(bundle, state, log, id string) []string {
	switch e.name {
	case gvisor:
		return gvisorCommand(bundle, state, log, id)
	case "crun":
		return []string{"crun", "--root", state, "--log=file:" + log, "--cgroup-manager=disabled", "run", "--detach", "--no-new-keyring", "--bundle", bundle, "--preserve-fds=1", id}
	}
	// "rootless" stands for: what is wrong with cgroups is not its affair.
	return []string{"runc", "--root", state, "--log", log, "--rootless=true", "run", "--detach", "--bundle", bundle, "--preserve-fds", "1", id}
}

var errNotRoot = errors.New("the host is not root")
