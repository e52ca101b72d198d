//go:build unix

package box

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A Node is an open folder or file of a run that is looked at when its script has
// ended. Where the folders are not this host's, whoever reaches them has one of its own.
// Names are one path element each.
type Node interface {
	io.Reader
	io.Closer

	Rewind() error                          // the next Read is at the beginning again
	Stat() (unix.Stat_t, error)             // of itself
	Names(most int) ([]string, error)       // of a folder: at most so many, in any order
	Lstat(name string) (unix.Stat_t, error) // of an entry, and of a link itself
	Open(name string) (Node, error)         // an entry, for reading; follows no link and waits for nobody
}

// Nodes are the folders of a run that are looked at. Around is the one in which outputs/
// and inputs/ lie; nil: nothing can lie beside them but the skill's own files.
type Nodes struct{ Skill, Inputs, Outputs, Around Node }

// local is a Node of this host.
type local struct{ *os.File }

func (l local) Rewind() error {
	_, err := l.Seek(0, io.SeekStart)
	return err
}

func (l local) Stat() (st unix.Stat_t, err error) {
	err = unix.Fstat(int(l.Fd()), &st)
	return st, err
}

func (l local) Names(most int) ([]string, error) {
	names, err := l.Readdirnames(most)
	if err == io.EOF {
		err = nil
	}
	return names, err
}

func (l local) Lstat(name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(int(l.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func (l local) Open(name string) (Node, error) {
	f, err := openAt(l.File, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return local{f}, nil
}
