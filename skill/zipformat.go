package skill

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/tracon-go/tracon/bundle"
)

// The form of a zip archive is read here and not by archive/zip, which is made to
// read what it can: it takes bytes before and between entries, believes the
// directory where the entry says otherwise, and sets no bound to their number.
// What two programs read in two ways was approved as one and runs as the other.

const (
	zipLocal      = 0x04034b50
	zipCentral    = 0x02014b50
	zipEnd        = 0x06054b50
	zipLocator64  = 0x07064b50
	zipDescriptor = 0x08074b50

	zipLocalLen   = 30
	zipCentralLen = 46
	zipEndLen     = 22

	maxZipDirectory = 8 << 20 // bytes; 17,000 entries of the usual kind have 2 MB

	zipStored  = 0
	zipDeflate = 8

	zipEncrypted  = 1 << 0 // flags
	zipStreamed   = 1 << 3
	zipPatched    = 1 << 5
	zipStrong     = 1 << 6
	zipHiddenHead = 1 << 13

	zipExtra64   = 0x0001
	zipExtraName = 0x7075

	// Nothing that deflate makes is smaller than a 1,032nd of what it was made of.
	maxDeflateRatio = 1032
)

type zipEntry struct {
	name   string
	path   string // in the skill; see choose
	folder bool

	flags, method uint16
	crc           uint32
	packed, size  int64
	attributes    uint32
	offset        int64 // of the local header
	data, end     int64 // of the packed bytes
}

func (z *zipReader) bytes(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	switch got, err := z.r.ReadAt(b, at); {
	case got == len(b):
		return b, nil
	case err == io.EOF:
		return nil, badZip("", repack, "it is cut off")
	default:
		return nil, fmt.Errorf("archive: it cannot be read: %w", err)
	}
}

// directory reads the list of entries at the end of the archive.
func (z *zipReader) directory() error {
	tail := min(z.size, zipEndLen+math.MaxUint16)
	if tail < zipEndLen {
		return badZip("", "", "it is no zip archive")
	}
	b, err := z.bytes(z.size-tail, tail)
	if err != nil {
		return err
	}
	at := bytes.LastIndex(b, binary.LittleEndian.AppendUint32(nil, zipEnd))
	if at < 0 || at+zipEndLen > len(b) {
		return badZip("", "", "it is no zip archive, or it is cut off")
	}
	le, end := binary.LittleEndian, b[at:]
	if at+zipEndLen+int(le.Uint16(end[20:])) != len(b) {
		return badZip("", repack, "it has bytes behind its end, or two ends")
	}
	// An end that stands before this one and claims it as its comment.
	for i := bytes.Index(b[:at], end[:4]); i >= 0; {
		if i+zipEndLen <= len(b) && i+zipEndLen+int(le.Uint16(b[i+20:])) == len(b) {
			return badZip("", repack, "it has two ends")
		}
		next := bytes.Index(b[i+1:at], end[:4])
		if next < 0 {
			break
		}
		i += 1 + next
	}
	count, size := int64(le.Uint16(end[10:])), int64(le.Uint32(end[12:]))
	z.start = int64(le.Uint32(end[16:]))
	endAt := z.size - tail + int64(at)
	switch {
	case at >= 20 && le.Uint32(b[at-20:]) == zipLocator64 || count == math.MaxUint16 || size == math.MaxUint32 || z.start == math.MaxUint32:
		return badZip("", "pack it without zip64, which is for more than 4 GiB", "it is a zip64 archive")
	case le.Uint16(end[4:]) != 0 || le.Uint16(end[6:]) != 0 || int64(le.Uint16(end[8:])) != count:
		return badZip("", repack, "it is one part of several")
	case z.start+size != endAt:
		return badZip("", repack, "it has bytes before its entries or behind their list")
	}
	if most := int64(8*z.limits.Files + 1024); count > most {
		return &ArchiveError{"", fmt.Sprintf("it has %d entries, at most %d", count, most), "leave out what no script needs", bundle.ErrLimit}
	}
	if size > maxZipDirectory {
		return &ArchiveError{"", fmt.Sprintf("the list of its entries has %d bytes, at most %d", size, maxZipDirectory), repack, bundle.ErrLimit}
	}
	list, err := z.bytes(z.start, size)
	if err != nil {
		return err
	}
	z.entries = make([]*zipEntry, 0, min(count, size/zipCentralLen))
	for range count {
		e, rest, err := centralEntry(list)
		if err != nil {
			return err
		}
		z.entries, list = append(z.entries, e), rest
	}
	if len(list) > 0 {
		return badZip("", repack, "the list of its entries has bytes of no entry")
	}
	return nil
}

func centralEntry(b []byte) (e *zipEntry, rest []byte, err error) {
	le := binary.LittleEndian
	if len(b) < zipCentralLen || le.Uint32(b) != zipCentral {
		return nil, nil, badZip("", repack, "the list of its entries cannot be read")
	}
	name, extra, comment := int(le.Uint16(b[28:])), int(le.Uint16(b[30:])), int(le.Uint16(b[32:]))
	if len(b) < zipCentralLen+name+extra+comment {
		return nil, nil, badZip("", repack, "the list of its entries is cut off")
	}
	e = &zipEntry{
		name:  string(b[zipCentralLen : zipCentralLen+name]),
		flags: le.Uint16(b[8:]), method: le.Uint16(b[10:]), crc: le.Uint32(b[16:]),
		packed: int64(le.Uint32(b[20:])), size: int64(le.Uint32(b[24:])),
		attributes: le.Uint32(b[38:]), offset: int64(le.Uint32(b[42:])),
	}
	switch {
	case !utf8.ValidString(e.name):
		return nil, nil, &ArchiveError{e.name, "its name is not UTF-8", "pack it with a program that writes names in UTF-8", bundle.ErrPath}
	case e.flags&(zipEncrypted|zipStrong|zipHiddenHead) != 0:
		return nil, nil, badZip(e.name, "pack it without a password", "it is encrypted")
	case e.flags&zipPatched != 0 || e.method != zipStored && e.method != zipDeflate:
		return nil, nil, badZip(e.name, "pack it with the usual method, deflate", "it is packed by method %d, which is not read", e.method)
	case le.Uint16(b[34:]) != 0:
		return nil, nil, badZip(e.name, repack, "it is in another part of the archive")
	case e.packed == math.MaxUint32 || e.size == math.MaxUint32 || e.offset == math.MaxUint32:
		return nil, nil, badZip(e.name, "pack it without zip64, which is for more than 4 GiB", "it is a zip64 entry")
	case e.method == zipStored && e.packed != e.size:
		return nil, nil, badZip(e.name, repack, "it says two sizes")
	case e.size > maxDeflateRatio*e.packed:
		return nil, nil, badZip(e.name, repack, "it says that %d bytes unpack to %d, which is impossible", e.packed, e.size)
	}
	b = b[zipCentralLen+name:]
	if err := e.checkExtra(b[:extra]); err != nil {
		return nil, nil, err
	}
	return e, b[extra+comment:], nil
}

// checkExtra refuses what would give the entry another name or size for some
// programs.
func (e *zipEntry) checkExtra(b []byte) error {
	for le := binary.LittleEndian; len(b) >= 4; {
		id, n := le.Uint16(b), int(le.Uint16(b[2:]))
		if len(b) < 4+n {
			return badZip(e.name, repack, "its extra fields cannot be read")
		}
		switch body := b[4 : 4+n]; {
		case id == zipExtra64:
			return badZip(e.name, "pack it without zip64, which is for more than 4 GiB", "it is a zip64 entry")
		case id == zipExtraName && (n < 5 || string(body[5:]) != e.name):
			return badZip(e.name, repack, "it has a second name")
		}
		b = b[4+n:]
	}
	return nil
}

const (
	unixType   = 0o170000 // of the mode, in the upper half of the attributes
	unixFolder = 0o040000
	unixFile   = 0o100000
	unixLink   = 0o120000

	dosFolder  = 0x10
	dosReparse = 0x400 // Windows' links
)

// checkKind takes files and folders alone, whatever system the archive says it
// is from: programs differ in whether they ask that.
func (e *zipEntry) checkKind() error {
	switch kind := e.attributes >> 16 & unixType; {
	case kind == unixLink || e.attributes&dosReparse != 0:
		return badZip(e.name, "put the file itself in its place", "it is a link")
	case kind != 0 && kind != unixFile && kind != unixFolder:
		return badZip(e.name, "leave it out", "it is neither a file nor a folder")
	case (kind == unixFolder || e.attributes&dosFolder != 0) && !e.folder || kind == unixFile && e.folder:
		return badZip(e.name, repack, "its name and its mode disagree on whether it is a folder")
	case e.folder && (e.size != 0 || e.packed > 2): // deflate writes nothing in two bytes
		return badZip(e.name, repack, "it is a folder and has content")
	}
	return nil
}

// layout compares each entry with its place in the directory, and sees to it that
// every byte of the archive belongs to exactly one of them.
func (z *zipReader) layout() error {
	order := slices.Clone(z.entries)
	slices.SortFunc(order, func(a, b *zipEntry) int { return cmp.Compare(a.offset, b.offset) })
	at := int64(0)
	for i, e := range order {
		next := z.start
		if i+1 < len(order) {
			next = order[i+1].offset
		}
		if e.offset != at || next > z.start {
			return badZip(e.name, repack, "it overlaps another entry, or there are bytes before it that belong to none")
		}
		if err := z.local(e); err != nil {
			return err
		}
		if e.end > next {
			return badZip(e.name, repack, "it overlaps another entry")
		}
		if err := z.descriptor(e, next); err != nil {
			return err
		}
		at = next
	}
	if at != z.start {
		return badZip("", repack, "it has bytes that belong to no entry")
	}
	return nil
}

// local reads the header before the entry's bytes.
func (z *zipReader) local(e *zipEntry) error {
	b, err := z.bytes(e.offset, min(int64(zipLocalLen+len(e.name)), max(z.start-e.offset, 0)))
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	if len(b) < zipLocalLen+len(e.name) || le.Uint32(b) != zipLocal {
		return badZip(e.name, repack, "it is not where the archive says")
	}
	same := func(at int, want uint32) bool {
		got := le.Uint32(b[at:])
		return got == want || got == 0 && e.flags&zipStreamed != 0
	}
	if int(le.Uint16(b[26:])) != len(e.name) || string(b[zipLocalLen:]) != e.name ||
		le.Uint16(b[6:]) != e.flags || le.Uint16(b[8:]) != e.method ||
		!same(14, e.crc) || !same(18, uint32(e.packed)) || !same(22, uint32(e.size)) {
		return badZip(e.name, repack, "the archive says two different things of it")
	}
	extra := int64(le.Uint16(b[28:]))
	e.data = e.offset + zipLocalLen + int64(len(e.name)) + extra
	e.end = e.data + e.packed
	if e.data > z.start {
		return badZip(e.name, repack, "it is cut off")
	}
	more, err := z.bytes(e.data-extra, extra)
	if err != nil {
		return err
	}
	return e.checkExtra(more)
}

// descriptor reads what a program that could not know the sizes beforehand has
// written behind the entry's bytes.
func (z *zipReader) descriptor(e *zipEntry, next int64) error {
	gap := next - e.end
	if e.flags&zipStreamed == 0 && gap == 0 {
		return nil
	}
	if e.flags&zipStreamed == 0 || gap != 12 && gap != 16 {
		return badZip(e.name, repack, "there are bytes behind it that belong to no entry")
	}
	b, err := z.bytes(e.end, gap)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	if gap == 16 && le.Uint32(b) != zipDescriptor {
		return badZip(e.name, repack, "there are bytes behind it that belong to no entry")
	}
	b = b[gap-12:]
	if le.Uint32(b) != e.crc || int64(le.Uint32(b[4:])) != e.packed || int64(le.Uint32(b[8:])) != e.size {
		return badZip(e.name, repack, "the archive says two different things of it")
	}
	return nil
}
