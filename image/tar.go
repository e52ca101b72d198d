package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
)

// compressions are those that are told apart, by their first bytes.
var compressions = []struct{ magic, name string }{
	{"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"}, {"\x04\x22\x4d\x18", "lz4"},
}

// headerBytes is how much an archive may have beside the files, for each entry.
const headerBytes = 8 << 10

// endBytes is how much more it may have: its end mark, and the zeros that fill the
// last record.
const endBytes = 1 << 20

// readTar unpacks a tar archive, plain or compressed with gzip.
func (u *unpacker) readTar(ctx context.Context, r io.Reader) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	head, _ := buffered.Peek(8)
	for _, c := range compressions {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return bad("it is compressed with %s; decompress it first", c.name)
		}
	}
	r = buffered
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return bad("%w", err)
		}
		r = z
	}
	whole := &bounded{r: r, left: u.tree.limits.archive()}
	if err := u.readEntries(ctx, whole, u.entry); err != nil {
		return err
	}
	if err := u.rootFileSystem(); err != nil {
		return err
	}
	return whole.end(ctx)
}

// archive is how long all that is read may be.
func (l Limits) archive() int64 { return l.Bytes + int64(l.Entries)*headerBytes + endBytes }

// readEntries reads a tar archive up to its end mark.
func (u *unpacker) readEntries(ctx context.Context, r io.Reader, take func(context.Context, *tar.Header, io.Reader) error) error {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		switch {
		case err == io.EOF:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrContent):
			return err
		case err != nil:
			return bad("it is no tar archive that can be read: %w", err)
		}
		if err := take(ctx, h, archive); err != nil {
			return err
		}
	}
}

func (u *unpacker) entry(ctx context.Context, h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	p, err := u.tree.limits.clean(h.Name)
	if err != nil {
		return err
	}
	if h.Typeflag == tar.TypeLink {
		target, err := u.tree.limits.clean(h.Linkname)
		if err != nil {
			return err
		}
		return u.hardLink(p, target)
	}
	return u.plain(ctx, p, h, r)
}

// plain takes an entry that means none but itself.
func (u *unpacker) plain(ctx context.Context, p string, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return u.folder(p)
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(ctx, p, node{exec: h.Mode&0o111 != 0, size: h.Size, time: seconds(h.ModTime)}, r)
	case tar.TypeSymlink:
		return u.link(p, h.Linkname)
	case tar.TypeChar, tar.TypeBlock:
		return u.skip(p, "a device")
	case tar.TypeFifo:
		return u.skip(p, "a pipe")
	}
	return bad("the entry %q is of the unknown kind %q", p, h.Typeflag)
}

// rootFileSystem refuses what is none.
func (u *unpacker) rootFileSystem() error {
	has := func(p string) bool { return u.tree.nodes[p].kind != 0 }
	switch {
	case len(u.tree.nodes) == 0:
		return bad("there is nothing in it")
	case has("oci-layout") || has("manifest.json") && !has("usr") && !has("bin"):
		return bad("it is a container image in layers whose parts lie in an order that nobody writes; unpack it into a folder, and import that")
	}
	return nil
}

// A bounded reader fails when more is read. It tells that there is no more only
// with a read that gets nothing.
type bounded struct {
	r     io.Reader
	left  int64
	ended bool // somebody was told that there is no more
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, bad("the archive is longer than its limits of bytes and entries allow")
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == io.EOF && n > 0 {
		err = nil
	}
	b.ended = b.ended || err == io.EOF
	return n, err
}

// end holds that the archive that was read to its end is whole. A tar reader takes
// one that just breaks off between two entries for whole, so that the end mark, two
// blocks of zeros, must have been there before the bytes ended; and behind it may
// come zeros alone. With them gzip compares its checksum.
func (b *bounded) end(ctx context.Context) error {
	if b.ended {
		return bad("it breaks off: the end mark of a tar archive is missing")
	}
	var buffer [32 << 10]byte
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := b.Read(buffer[:])
		if len(bytes.Trim(buffer[:n], "\x00")) > 0 {
			return bad("something comes behind its end mark")
		}
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, ErrContent):
			return err
		case err != nil:
			return bad("it cannot be read to its end: %w", err)
		}
	}
}
