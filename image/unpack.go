package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"
)

// maxSkipped is how many of those left out are named.
const maxSkipped = 100

// An unpacker writes an image below a folder. There is no link below it before
// finish, so that whatever names come, none is followed.
type unpacker struct {
	root    *os.Root
	tree    *tree
	skipped []string // each with the reason
	left    int      // how many were left out
	buffer  []byte
}

func newUnpacker(root *os.Root, l Limits) *unpacker {
	return &unpacker{root: root, tree: newTree(l), buffer: make([]byte, 128<<10)}
}

// skip leaves an entry out.
func (u *unpacker) skip(name, why string) error {
	u.note("%q: %s", name, why)
	return u.tree.count(0)
}

// note says what is left out.
func (u *unpacker) note(format string, args ...any) {
	u.left++
	if len(u.skipped) < maxSkipped {
		u.skipped = append(u.skipped, fmt.Sprintf(format, args...))
	}
}

// folder makes a folder, which may come again.
func (u *unpacker) folder(p string) error {
	if p == "" || u.tree.nodes[p].kind == folder {
		u.tree.layers.note(p)
		return u.tree.count(0)
	}
	if err := u.above(p); err != nil {
		return err
	}
	return u.mkdir(p)
}

// above makes the folders above p that no entry has made.
func (u *unpacker) above(p string) error {
	missing, err := u.tree.room(p)
	for _, dir := range missing {
		if err == nil {
			err = u.mkdir(dir)
		}
	}
	return err
}

func (u *unpacker) mkdir(p string) error {
	if err := errors.Join(u.tree.count(0), u.tree.name(p, "")); err != nil {
		return err
	}
	u.tree.put(p, node{kind: folder})
	return u.root.Mkdir(p, 0o700)
}

// link keeps the text of a link; finish makes it.
func (u *unpacker) link(p, target string) error {
	switch {
	case target == "" || bytes.IndexByte([]byte(target), 0) >= 0:
		return bad("the link %q leads to %q", p, target)
	case len(target) > u.tree.limits.PathBytes:
		return bad("the link %q has %d bytes, at most %d", p, len(target), u.tree.limits.PathBytes)
	}
	if err := u.above(p); err != nil {
		return err
	}
	if err := errors.Join(u.tree.count(0), u.tree.name(p, target)); err != nil {
		return err
	}
	u.tree.put(p, node{kind: link, target: target})
	return nil
}

// hardLink makes p the same file as target, which came before. Its bytes count again:
// whoever reads the image, or sends it on, does so for each name.
func (u *unpacker) hardLink(p, target string) error {
	n := u.tree.nodes[target]
	if n.kind != file {
		return bad("the hard link %q leads to %q, which is no file that came before it", p, target)
	}
	if err := u.above(p); err != nil {
		return err
	}
	if err := errors.Join(u.tree.count(n.size), u.tree.name(p, "")); err != nil {
		return err
	}
	u.tree.put(p, n)
	return u.root.Link(target, p)
}

// file writes the file that n tells of from r. Where it has nothing but zeros it
// gets holes.
func (u *unpacker) file(ctx context.Context, p string, n node, r io.Reader) error {
	if err := u.above(p); err != nil {
		return err
	}
	if err := errors.Join(u.tree.count(n.size), u.tree.name(p, "")); err != nil {
		return err
	}
	f, err := u.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n.kind = file
	err = u.fill(ctx, f, &n, r)
	if err == nil {
		err = f.Chmod(mode(n))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := u.root.Chtimes(p, time.Unix(n.time, 0), time.Unix(n.time, 0)); err != nil {
		return err
	}
	u.tree.put(p, n)
	return nil
}

func (u *unpacker) fill(ctx context.Context, f *os.File, n *node, r io.Reader) error {
	h := sha256.New()
	half := len(u.buffer) / 2
	zeros := u.buffer[half:] // nothing writes there
	for at := int64(0); at < n.size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b := u.buffer[:min(int64(half), n.size-at)]
		if _, err := io.ReadFull(r, b); err != nil {
			return bad("it ends within a file: %w", err)
		}
		h.Write(b)
		if !bytes.Equal(b, zeros[:len(b)]) {
			if _, err := f.WriteAt(b, at); err != nil {
				return err
			}
		}
		at += int64(len(b))
	}
	h.Sum(n.sum[:0])
	return f.Truncate(n.size)
}

// mode is what an entry may be used for, by everybody.
func mode(n node) os.FileMode {
	if n.exec || n.kind == folder {
		return 0o555
	}
	return 0o444
}

// finish makes the links and takes the right to write from the folders.
func (u *unpacker) finish() error {
	paths := slices.Sorted(maps.Keys(u.tree.nodes))
	for _, p := range paths {
		if n := u.tree.nodes[p]; n.kind == link {
			if err := u.root.Symlink(n.target, p); err != nil {
				return err
			}
		}
	}
	for _, p := range slices.Backward(paths) { // what lies in a folder comes behind it
		if n := u.tree.nodes[p]; n.kind == folder {
			if err := u.root.Chmod(p, mode(n)); err != nil {
				return err
			}
		}
	}
	return u.root.Chmod(".", 0o555)
}
