package box

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// homes returns the cgroups of version 2 below which runs may get theirs. The
// first is our own. The second is the one above it, where that was given to us:
// the kernel limits nothing below a cgroup that has processes itself, as ours
// has, so a service that limits others is started in a part of what it was given
// (systemd: Delegate=yes and DelegateSubgroup=).
func homes() ([]string, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	list := []string{own}
	if above := filepath.Dir(own); given(above) {
		list = append(list, above)
	}
	return list, nil
}

// given reports whether the cgroup was delegated to this process: systemd marks
// it so; it belongs to our user, who is not root; or it is the topmost that a
// container has. The root of all is given to nobody.
func given(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err != nil {
		return false // it is the root of all, or no cgroup
	}
	mark := make([]byte, 2)
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, mark); err == nil && string(mark[:n]) == "1" {
			return true
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err == nil && os.Geteuid() != 0 && int(st.Uid) == os.Geteuid() {
		return true
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(dir), subtreeControl))
	return os.IsNotExist(err)
}
