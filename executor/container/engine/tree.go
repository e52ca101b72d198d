//go:build linux && (amd64 || arm64)

package engine

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/tracon-go/tracon/executor/internal/box"
	"golang.org/x/sys/unix"
)

// statSize is that of what the kernel says of a file: the layout of this architecture,
// which is the container's too.
const statSize = int(unsafe.Sizeof(unix.Stat_t{}))

// stat reads what the kernel says of a file.
func stat(b []byte) (st unix.Stat_t) {
	_ = binary.Read(bytes.NewReader(b), binary.LittleEndian, &st)
	return st
}

// A node is a folder or a file in a container whose script has ended, as the first
// process reaches it. Nothing else lives there any more.
type node struct {
	tree    *tree
	fd      slot
	own     unix.Stat_t
	entries map[string]unix.Stat_t // of a folder, once it was listed
	offset  int64
	chunk   []byte // that was read ahead of offset
}

var _ box.Node = (*node)(nil)

// A tree is where nodes are. Its first error is that of all later calls.
type tree struct {
	t    *talk
	free []slot
	shut []slot // descriptors to be closed with the next message
	err  error
}

// mostOpen is how many nodes may be open at once: as deep as folders are looked into,
// and more.
const mostOpen = 200

func newTree(t *talk) *tree {
	r := &tree{t: t}
	for s := slotOpen + mostOpen; s > slotOpen; s-- {
		r.free = append(r.free, s)
	}
	return r
}

// ask sends a message and reads its answer, of so many bytes.
func (r *tree) ask(m *message, n int) ([]byte, error) {
	if r.err == nil {
		r.err = r.t.say(m)
	}
	var b []byte
	if r.err == nil {
		b, r.err = r.t.hear(n)
	}
	return b, r.err
}

// begin returns a message that first closes what is to be closed.
func (r *tree) begin() *message {
	m := &message{}
	for _, s := range r.shut {
		m.try(unix.SYS_CLOSE, 0, of(s))
		r.free = append(r.free, s)
	}
	r.shut = nil
	return m
}

const openFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC

// root opens the folder at the path.
func (r *tree) root(name string) (*node, error) { return r.open(num(-1), name) }

func (r *tree) open(dir arg, name string) (*node, error) {
	m := r.begin()
	if len(r.free) == 0 {
		return nil, unix.EMFILE
	}
	s := r.free[len(r.free)-1]
	m.try(unix.SYS_OPENAT, s, dir, m.text(name), num(openFlags), num(0))
	m.try(unix.SYS_FSTAT, slotA, of(s), inScratch(0))
	r.t.answer(m, [2]arg{at(s), num(8)}, [2]arg{at(slotA), num(8)}, [2]arg{inScratch(0), num(statSize)})
	b, err := r.ask(m, 16+statSize)
	if err != nil {
		return nil, err
	}
	if n := result(b); n < 0 {
		return nil, syscall.Errno(-n)
	}
	r.free = r.free[:len(r.free)-1]
	n := &node{tree: r, fd: s, own: stat(b[16:])}
	if bad := result(b[8:]); bad < 0 {
		n.Close()
		return nil, syscall.Errno(-bad)
	}
	return n, nil
}

func (n *node) Close() error {
	n.tree.shut = append(n.tree.shut, n.fd)
	return nil
}

func (n *node) Stat() (unix.Stat_t, error)         { return n.own, nil }
func (n *node) Open(name string) (box.Node, error) { return n.tree.open(of(n.fd), name) }

// Rewind makes the next Read begin at the beginning.
func (n *node) Rewind() error {
	n.offset, n.chunk = 0, nil
	return nil
}

// chunkSize is how much of a file is read at once.
const chunkSize = 256 << 10

func (n *node) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(n.chunk) == 0 {
		m := n.tree.begin()
		m.try(unix.SYS_PREAD64, slotA, of(n.fd), inScratch(0), num(chunkSize), num(n.offset))
		n.tree.t.answer(m, [2]arg{at(slotA), num(8)}, [2]arg{inScratch(0), of(slotA)})
		b, err := n.tree.ask(m, 8)
		if err != nil {
			return 0, err
		}
		got := result(b)
		switch {
		case got == 0:
			return 0, io.EOF
		case got < 0:
			return 0, syscall.Errno(-got)
		case got > chunkSize:
			return 0, errTalk
		}
		if n.chunk, n.tree.err = n.tree.t.more(int(got)); n.tree.err != nil {
			return 0, n.tree.err
		}
		n.offset += got
	}
	c := copy(p, n.chunk)
	n.chunk = n.chunk[c:]
	return c, nil
}

// direntsSize is how much of a folder is listed at once.
const direntsSize = 64 << 10

// statsAtOnce is of how many entries the kernel is asked at once.
const statsAtOnce = 2000

// Names lists a folder, and asks of each entry what it is: they are looked at next.
func (n *node) Names(most int) ([]string, error) {
	var list []entry
	for len(list) < most {
		m := n.tree.begin()
		m.try(unix.SYS_GETDENTS64, slotA, of(n.fd), inScratch(0), num(direntsSize))
		n.tree.t.answer(m, [2]arg{at(slotA), num(8)}, [2]arg{inScratch(0), of(slotA)})
		b, err := n.tree.ask(m, 8)
		if err != nil {
			return nil, err
		}
		got := result(b)
		if got < 0 {
			return nil, syscall.Errno(-got)
		}
		if got > direntsSize {
			return nil, errTalk
		}
		if got == 0 {
			break
		}
		if b, n.tree.err = n.tree.t.more(int(got)); n.tree.err != nil {
			return nil, n.tree.err
		}
		more, ok := dirents(b)
		if !ok {
			return nil, errTalk
		}
		list = append(list, more...)
	}
	list = list[:min(len(list), most)]
	n.entries = make(map[string]unix.Stat_t, len(list))
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.name
	}
	for part := range slices.Chunk(list, statsAtOnce) {
		if err := n.stats(part); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// An entry is a name in a folder, and the number of its file.
type entry struct {
	name string
	file uint64
}

// stats asks what these entries are. One of which the kernel does not tell is left out.
func (n *node) stats(list []entry) error {
	m := n.tree.begin()
	for i, e := range list {
		m.try(fstatat, 0, of(n.fd), m.text(e.name), inScratch(i*statSize), num(unix.AT_SYMLINK_NOFOLLOW))
	}
	size := len(list) * statSize
	n.tree.t.answer(m, [2]arg{inScratch(0), num(size)})
	b, err := n.tree.ask(m, size)
	if err != nil {
		return err
	}
	for i, e := range list {
		if st := stat(b[i*statSize:]); st.Ino == e.file {
			n.entries[e.name] = st
		}
	}
	return nil
}

// Lstat returns what an entry is that was listed.
func (n *node) Lstat(name string) (unix.Stat_t, error) {
	st, ok := n.entries[name]
	if !ok {
		return st, unix.ENOENT
	}
	return st, nil
}

// dirents reads what the kernel says of a folder: for each entry eight bytes that name
// its file, eight of a place, two of the entry's size, one of its kind, and its name.
func dirents(b []byte) (list []entry, ok bool) {
	const head = 19
	for len(b) > 0 {
		if len(b) < head {
			return nil, false
		}
		size := int(binary.LittleEndian.Uint16(b[16:]))
		if size <= head || size > len(b) {
			return nil, false
		}
		name, _, ended := strings.Cut(string(b[head:size]), "\x00")
		if !ended || name == "" || strings.Contains(name, "/") {
			return nil, false
		}
		if name != "." && name != ".." {
			list = append(list, entry{name, binary.LittleEndian.Uint64(b)})
		}
		b = b[size:]
	}
	return list, true
}
