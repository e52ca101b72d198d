package skill

import (
	"bufio"
	"compress/flate"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// An inflater is kept from entry to entry: each would allocate 40 KB anew.
type inflater struct {
	in  *bufio.Reader
	out io.ReadCloser
}

func (f *inflater) reset(r io.Reader) error {
	if f.in == nil {
		// As it reads single bytes, the inflater takes none beyond its own end.
		f.in = bufio.NewReaderSize(r, 16<<10)
		f.out = flate.NewReader(f.in)
		return nil
	}
	f.in.Reset(r)
	return f.out.(flate.Resetter).Reset(f.in, nil)
}

// unpack returns the content of an entry, whose stated size is within the limits, in
// place of what buf holds where that has room. It stops one byte behind that size,
// whatever else there is.
func (z *zipReader) unpack(e *zipEntry, buf []byte) ([]byte, error) {
	var in io.Reader = io.NewSectionReader(z.r, e.data, e.packed)
	if e.method == zipDeflate {
		if err := z.flate.reset(in); err != nil {
			return nil, badZip(e.name, repack, "it cannot be unpacked")
		}
		in = z.flate.out
	}
	data := slices.Grow(buf[:0], int(e.size))[:e.size]
	if n, err := io.ReadFull(in, data); err != nil {
		return nil, z.unpackError(e, int64(n), err)
	}
	switch n, err := io.ReadFull(in, make([]byte, 1)); {
	case n > 0:
		return nil, badZip(e.name, repack, "it unpacks to more than the %d bytes that it says", e.size)
	case err != io.EOF:
		return nil, z.unpackError(e, e.size, err)
	}
	if e.method == zipDeflate {
		if _, err := z.flate.in.ReadByte(); err == nil {
			return nil, badZip(e.name, repack, "it has bytes behind its content")
		} else if err != io.EOF {
			return nil, fmt.Errorf("archive: it cannot be read: %w", err)
		}
	}
	if crc32.ChecksumIEEE(data) != e.crc {
		return nil, badZip(e.name, repack, "its checksum is wrong: it is damaged")
	}
	return data, nil
}

func (z *zipReader) unpackError(e *zipEntry, n int64, err error) error {
	switch err.(type) {
	case flate.CorruptInputError, flate.InternalError:
		err = io.EOF
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return badZip(e.name, repack, "it cannot be unpacked: it ends or breaks after %d of %d bytes", n, e.size)
	}
	return fmt.Errorf("archive: it cannot be read: %w", err)
}
