package kit

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// What packs a kernel with LZ4 writes the old form of its frames: a magic number, then
// blocks with their length before them, each of 8 MiB when unpacked but for the last.
// The kernel's build puts the length of the whole, in 4 bytes, behind the last.
const (
	lz4Magic = 0x184c2102
	lz4Block = 8 << 20
	lz4Most  = 255 // times as long as it was at most
)

var errLZ4 = errors.New("it is not packed with LZ4, or is damaged")

// unpackLZ4 unpacks b, to at most so many bytes.
func unpackLZ4(b []byte, most int) ([]byte, error) {
	if len(b) < 8 || binary.LittleEndian.Uint32(b) != lz4Magic {
		return nil, errLZ4
	}
	length := binary.LittleEndian.Uint32(b[len(b)-4:])
	if uint64(length) > uint64(most) {
		return nil, fmt.Errorf("unpacked it has %d bytes, at most %d are read", length, most)
	}
	b = b[4 : len(b)-4]
	if uint64(length) > lz4Most*uint64(len(b)) {
		return nil, errLZ4
	}
	out := make([]byte, 0, length)
	for len(b) > 0 {
		if len(b) < 4 {
			return nil, errLZ4
		}
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if n == 0 || uint64(n) > uint64(len(b)) {
			return nil, errLZ4
		}
		var err error
		if out, err = unpackBlock(out, b[:n], min(len(out)+lz4Block, int(length))); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	if len(out) != int(length) {
		return nil, errLZ4
	}
	return out, nil
}

// unpackBlock appends what one block holds to out, which may grow to most. A block is
// sequences: how many bytes follow as they are, these, and how far back and how long a
// part of what is there already comes again. The last one ends behind its bytes.
func unpackBlock(out, b []byte, most int) ([]byte, error) {
	from := len(out)
	for {
		if len(b) == 0 {
			return nil, errLZ4
		}
		token := b[0]
		literal, rest, ok := lz4Length(int(token>>4), b[1:])
		if !ok || literal > len(rest) || literal > most-len(out) {
			return nil, errLZ4
		}
		out = append(out, rest[:literal]...)
		if b = rest[literal:]; len(b) == 0 {
			return out, nil
		}
		if len(b) < 2 {
			return nil, errLZ4
		}
		back := int(binary.LittleEndian.Uint16(b))
		again, rest, ok := lz4Length(int(token&15), b[2:])
		again += 4
		if !ok || back == 0 || back > len(out)-from || again > most-len(out) {
			return nil, errLZ4
		}
		b = rest
		for range again { // byte by byte: what comes again may be what has just come
			out = append(out, out[len(out)-back])
		}
	}
}

// lz4Length reads what is left of a length behind the half of a byte that begins it.
func lz4Length(n int, b []byte) (int, []byte, bool) {
	if n < 15 {
		return n, b, true
	}
	for i, more := range b {
		if n += int(more); more < 255 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
