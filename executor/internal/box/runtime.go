//go:build unix

package box

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DefaultRuntime returns the folder below which executors stage when nobody
// names another: "tracon" in the user's runtime folder (XDG_RUNTIME_DIR), else
// "tracon-UID" in the folder that TMPDIR names, else in a file system in memory
// that is fit for it, else in the system's temporary folder. It makes nothing.
func DefaultRuntime() string {
	return defaultRuntime(os.Getenv, shared)
}

// shared is where Linux has a file system in memory for everybody.
const shared = "/dev/shm"

func defaultRuntime(getenv func(string) string, shared string) string {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tracon")
	}
	own := fmt.Sprintf("tracon-%d", os.Geteuid())
	// Whoever sets TMPDIR chose a place for what is temporary.
	if getenv("TMPDIR") == "" && roomy(shared) && !strange(filepath.Join(shared, own)) {
		return filepath.Join(shared, own)
	}
	return filepath.Join(os.TempDir(), own)
}

// strange reports whether something stands at the path that is no private folder
// of ours. In a folder for everybody anybody may have put it there, and it must
// not keep runs from being staged elsewhere.
func strange(path string) bool {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if err != nil {
		return err != unix.ENOENT
	}
	return st.Mode&(unix.S_IFMT|0o777) != unix.S_IFDIR|0o700 || int(st.Uid) != os.Geteuid()
}
