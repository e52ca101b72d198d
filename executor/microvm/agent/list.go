//go:build linux

package main

import (
	"io"
	"os"
	"slices"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// A lister lists what a script left, when no process of it is there any more.
type lister struct {
	ground  *ground
	entries []frame.Entry
	left    int // entries of this root that may still come
}

// roots are the folders that are listed.
var roots = [frame.Roots]string{skillName, inputsName, outputsName}

func list(g *ground) *lister {
	l := &lister{ground: g}
	for root, name := range roots {
		l.left = frame.MaxEntries
		_ = l.folder(uint32(root), filesDir+"/"+name, 0)
	}
	return l
}

// folder lists what is in the folder, which is that of the number, and below, as far as
// entries may still come.
func (l *lister) folder(number uint32, path string, depth int) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if l.left == 0 {
		return nil
	}
	names, err := f.Readdirnames(l.left)
	if err != nil && err != io.EOF {
		return err
	}
	l.left -= len(names)
	slices.Sort(names)
	first := len(l.entries)
	for _, name := range names {
		l.entries = append(l.entries, l.entry(number, path+"/"+name, name))
	}
	for i := range names {
		e := l.entries[first+i]
		if e.Kind != frame.Folder || e.Foreign || depth+1 >= bundle.DefaultDepth {
			continue
		}
		if l.folder(frame.Roots+uint32(first+i), path+"/"+e.Name, depth+1) != nil {
			l.entries[first+i].Closed = true
		}
	}
	return nil
}

func (l *lister) entry(parent uint32, path, name string) frame.Entry {
	e := frame.Entry{Parent: parent, Name: name, Kind: frame.Other}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		e.Closed = true
		return e
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.Kind = frame.Folder
	case unix.S_IFREG:
		e.Kind, e.Size, e.Twice = frame.Regular, uint64(st.Size), st.Nlink != 1
	case unix.S_IFLNK:
		e.Kind = frame.Link
	}
	e.Later, e.Foreign = time.Unix(st.Mtim.Unix()).After(l.ground.laid), st.Dev != l.ground.dev
	return e
}

// path returns where the entry of that number is; nowhere for one that is not there.
func (l *lister) path(number uint32) string {
	path := ""
	for number >= frame.Roots {
		i := number - frame.Roots
		if uint64(i) >= uint64(len(l.entries)) {
			return ""
		}
		path = "/" + l.entries[i].Name + path
		number = l.entries[i].Parent
	}
	return filesDir + "/" + roots[number] + path
}
