//go:build linux

package hostcase

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// B3: what a process holds of the host's memory is seen: its own pages, files in memory
// that it has open, whether it maps them or not, and that they are let go of.
func TestMemory(t *testing.T) {
	const size = 32 << 20
	before := Memory(t)
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "test")
	b := make([]byte, size)
	for i := 0; i < size; i += 4096 { // one that nobody wrote to is not there
		b[i] = 1
	}
	_, err = f.Write(b)
	held := Memory(t)
	runtime.KeepAlive(b)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	if held.Files != before.Files+size || held.Own < before.Own+size/2 { // the race detector gives some of its own back
		t.Errorf("with %d bytes more of each kind: %s; before: %s", size, held, before)
	}
	if after := MemoryFiles(t); after != before.Files {
		t.Errorf("behind it there are %d bytes in files, and %d were before", after, before.Files)
	}
}
