//go:build linux

package hostcase

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Held is what this process and those that it has started hold of the host's memory, in
// bytes, without what the kernel can read from a disk again. It is theirs alone: what the
// host says of all its shared memory changed by 122 MiB within a minute, as others did.
type Held struct {
	Own      int64 // this process's pages
	Files    int64 // its open files in memory (memfd), whoever maps them
	Children int64 // the pages of those that it has started, which Files may have too
}

// Sum is all of it.
func (h Held) Sum() int64 { return h.Own + h.Files + h.Children }

func (h Held) String() string {
	return fmt.Sprintf("%.1f MiB of its own, %.1f MiB in files, %.1f MiB in processes", MiB(h.Own), MiB(h.Files), MiB(h.Children))
}

// MiB returns the bytes as mebibytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// Memory returns what is held when this process has given back what it does not need.
func Memory(t testing.TB) Held {
	t.Helper()
	debug.FreeOSMemory()
	h := Held{Files: MemoryFiles(t)}
	for pid := range Started() {
		if m, err := Rollup(pid); err == nil { // not one that has just ended
			h.Children += m["Pss_Anon"] + m["Pss_Shmem"]
		}
	}
	m, err := Rollup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	h.Own = m["Pss_Anon"] + m["Pss_Shmem"]
	return h
}

// MemoryFiles returns how many bytes the files in memory have that this process has open.
func MemoryFiles(t testing.TB) (bytes int64) {
	t.Helper()
	seen := map[uint64]bool{}
	for _, path := range List("/proc/self/fd") {
		to, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(to, "/memfd:") {
			continue // that of the list itself, which is closed
		}
		var st syscall.Stat_t
		if err := syscall.Stat(path, &st); errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if !seen[st.Ino] {
			bytes += st.Blocks * 512
		}
		seen[st.Ino] = true
	}
	return bytes
}

// Rollup returns what the kernel says of all memory of a process, in bytes, by its names
// (proc(5), smaps_rollup).
func Rollup(pid int) (map[string]int64, error) {
	return sizes(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
}

// HostMemory tells what the kernel says of all memory of the host. It is for a log alone,
// since whoever else is there changes it.
func HostMemory(t testing.TB) string {
	t.Helper()
	m, err := sizes("/proc/meminfo") // proc(5)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("the host has %.0f MiB available, %.1f shared, %.1f of the kernel's own", MiB(m["MemAvailable"]), MiB(m["Shmem"]), MiB(m["SUnreclaim"]))
}

// sizes reads the lines of such a file that give a size.
func sizes(path string) (map[string]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, line, err)
			}
			list[strings.TrimSuffix(f[0], ":")] = kib << 10
		}
	}
	return list, nil
}
