//go:build linux && amd64

package microvm

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// left is what a script left in its machine, as the machine tells of it. Nothing of it
// is believed but that it was told; it is collected as what lies on this host is.
type left struct {
	entries  []frame.Entry
	children map[uint32][]uint32 // the numbers of a folder's entries, in the order of their names
	fetch    func(number uint32, most uint64) ([]byte, error)
}

// The clock has two times: that of the laying out, and later.
var laid = time.Unix(1, 0)

// newLeft returns the folders of the run.
func newLeft(t frame.Tree, fetch func(number uint32, most uint64) ([]byte, error)) box.Nodes {
	l := &left{t.Entries, map[uint32][]uint32{}, fetch}
	for i, e := range t.Entries {
		l.children[e.Parent] = append(l.children[e.Parent], frame.Roots+uint32(i))
	}
	return box.Nodes{Skill: &leftNode{l, 0, nil}, Inputs: &leftNode{l, 1, nil}, Outputs: &leftNode{l, 2, nil}}
}

// A leftNode is one that was opened. Its bytes are asked for when they are read.
type leftNode struct {
	*left
	number uint32
	data   *bytes.Reader // nil: they were not asked for
}

var _ box.Node = (*leftNode)(nil)

func (n *leftNode) Stat() (unix.Stat_t, error) { return n.stat(n.number) }

func (l *left) stat(number uint32) (st unix.Stat_t, err error) {
	st.Nlink = 1
	if number < frame.Roots {
		st.Mode = unix.S_IFDIR
		return st, nil
	}
	e := l.entries[number-frame.Roots]
	st.Mode = map[frame.Kind]uint32{frame.Folder: unix.S_IFDIR, frame.Regular: unix.S_IFREG, frame.Link: unix.S_IFLNK, frame.Other: unix.S_IFIFO}[e.Kind]
	st.Size = int64(e.Size)
	if e.Twice {
		st.Nlink = 2
	}
	if e.Foreign {
		st.Dev = 1
	}
	if e.Later {
		st.Mtim.Sec = laid.Unix() + 1
	}
	return st, nil
}

func (n *leftNode) Names(most int) ([]string, error) {
	if n.number >= frame.Roots && n.entries[n.number-frame.Roots].Closed {
		return nil, unix.EACCES
	}
	var names []string
	for _, c := range n.children[n.number] {
		if len(names) == most {
			break
		}
		names = append(names, n.entries[c-frame.Roots].Name)
	}
	return names, nil
}

func (n *leftNode) find(name string) (uint32, error) {
	list := n.children[n.number]
	i, ok := slices.BinarySearchFunc(list, name, func(c uint32, name string) int {
		return bytes.Compare([]byte(n.entries[c-frame.Roots].Name), []byte(name))
	})
	if !ok {
		return 0, os.ErrNotExist
	}
	return list[i], nil
}

func (n *leftNode) Lstat(name string) (unix.Stat_t, error) {
	c, err := n.find(name)
	if err != nil {
		return unix.Stat_t{}, err
	}
	return n.stat(c)
}

func (n *leftNode) Open(name string) (box.Node, error) {
	c, err := n.find(name)
	if err != nil {
		return nil, err
	}
	if e := n.entries[c-frame.Roots]; e.Closed && e.Kind != frame.Folder {
		return nil, unix.EACCES
	}
	return &leftNode{n.left, c, nil}, nil
}

func (n *leftNode) Read(p []byte) (int, error) {
	if n.data == nil {
		st, err := n.Stat()
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
			err = fmt.Errorf("entry %d is no file", n.number)
		}
		var b []byte
		if err == nil {
			b, err = n.fetch(n.number, uint64(st.Size))
		}
		if err != nil {
			return 0, err
		}
		n.data = bytes.NewReader(b)
	}
	return n.data.Read(p)
}

func (n *leftNode) Rewind() error {
	if n.data != nil {
		n.data.Reset(n.bytes())
	}
	return nil
}

// bytes returns what was fetched.
func (n *leftNode) bytes() []byte {
	b := make([]byte, n.data.Size())
	_, _ = n.data.ReadAt(b, 0)
	return b
}

func (n *leftNode) Close() error { return nil }
