package box

import "golang.org/x/sys/unix"

// leastRoom is what a file system in memory must hold in all, in bytes: 1 GiB,
// about ten runs with everything at its default limit. Containers often have one
// of 64 MiB. It is the size that counts and not what is free now: the next start
// must look for leftovers in the same place.
const leastRoom = 1 << 30

// roomy reports whether runs can be staged in the folder in memory: a script may
// start its siblings directly, so programs can be started there.
func roomy(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	return st.Type == unix.TMPFS_MAGIC && st.Flags&unix.ST_NOEXEC == 0 && st.Blocks*uint64(st.Bsize) >= leastRoom
}
