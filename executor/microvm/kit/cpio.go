package kit

import (
	"fmt"
	"io/fs"
)

// An archive is a file system as a kernel unpacks it into memory at its start: cpio in
// its form "newc". Of the same files it has the same bytes: no times, no owners.
type archive struct {
	b     []byte
	count int
}

// Types of files, as cpio has them in a mode.
const (
	typeFolder  = 0o040000
	typeRegular = 0o100000
	typeDevice  = 0o020000
)

func (a *archive) folder(name string) { a.add(name, typeFolder|0o755, nil, 0, 0) }

func (a *archive) file(name string, mode fs.FileMode, data []byte) {
	a.add(name, typeRegular|uint32(mode.Perm()), data, 0, 0)
}

func (a *archive) device(name string, mode fs.FileMode, major, minor uint32) {
	a.add(name, typeDevice|uint32(mode.Perm()), nil, major, minor)
}

// add adds one entry: a head of numbers in hex, the name with its end, the bytes, each
// filled up to a multiple of four.
func (a *archive) add(name string, mode uint32, data []byte, major, minor uint32) {
	a.count++
	a.b = fmt.Appendf(a.b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.count, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0)
	a.b = append(append(a.b, name...), 0)
	a.fill()
	a.b = append(a.b, data...)
	a.fill()
}

func (a *archive) fill() {
	for len(a.b)%4 != 0 {
		a.b = append(a.b, 0)
	}
}

// bytes ends the archive.
func (a *archive) bytes() []byte {
	a.add("TRAILER!!!", 0, nil, 0, 0)
	return a.b
}
