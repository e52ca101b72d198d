package kit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// kernel returns an ELF file with one note.
func kernel(machine elf.Machine, owner string, kind uint32) []byte {
	note := binary.LittleEndian.AppendUint32(nil, uint32(len(owner)+1))
	note = binary.LittleEndian.AppendUint32(note, 4)
	note = binary.LittleEndian.AppendUint32(note, kind)
	note = append(append(note, owner...), 0)
	for len(note)%4 != 0 {
		note = append(note, 0)
	}
	note = append(note, 1, 2, 3, 4)
	var b bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	p := elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 64 + 56, Filesz: uint64(len(note)), Memsz: uint64(len(note))}
	_ = binary.Write(&b, binary.LittleEndian, h) // a buffer takes all
	_ = binary.Write(&b, binary.LittleEndian, p)
	b.Write(note)
	return b.Bytes()
}

// packed returns b as LZ4 packs it where nothing comes twice.
func packed(b []byte) []byte {
	block := []byte{0xf0}
	n := len(b) - 15
	for ; n >= 255; n -= 255 {
		block = append(block, 255)
	}
	block = append(append(block, byte(n)), b...)
	out := binary.LittleEndian.AppendUint32(nil, lz4Magic)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(block)))
	return binary.LittleEndian.AppendUint32(append(out, block...), uint32(len(b)))
}

// bootImage returns a boot image with that payload.
func bootImage(payload []byte) []byte {
	b := make([]byte, 2*sector)
	b[atSetupSectors] = 1
	copy(b[atMagic:], "HdrS")
	binary.LittleEndian.PutUint16(b[atVersion:], 0x20f)
	binary.LittleEndian.PutUint32(b[atPayload:], 16)
	binary.LittleEndian.PutUint32(b[atPayloadLength:], uint32(len(payload)))
	return append(append(b, make([]byte, 16)...), payload...)
}

// What a machine is started from is a kernel that can be, and said to be none otherwise.
func TestKernel(t *testing.T) {
	good := kernel(elf.EM_X86_64, noteOwner, noteEntry)
	cut := bootImage(packed(good))
	outside := bootImage(packed(good))
	binary.LittleEndian.PutUint32(outside[atPayloadLength:], 1<<30)
	for _, c := range []struct {
		name string
		in   []byte
		err  string
	}{
		{"unpacked", good, ""},
		{"a boot image", bootImage(packed(good)), ""},
		{"nothing", nil, "neither"},
		{"a text", []byte(strings.Repeat("x", 4096)), "neither"},
		{"another processor's", kernel(elf.EM_AARCH64, noteOwner, noteEntry), "EM_AARCH64"},
		{"without the entry", kernel(elf.EM_X86_64, noteOwner, noteEntry+1), "PVH"},
		{"an entry of another's", kernel(elf.EM_X86_64, "GNU", noteEntry), "PVH"},
		{"packed otherwise", bootImage(append([]byte{0x1f, 0x8b, 8, 0}, good...)), "LZ4"},
		{"cut off", cut[:len(cut)-9], "outside"},
		{"a payload that is not there", outside, "outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := vmlinux(c.in)
			if c.err == "" {
				if err != nil || !bytes.Equal(got, good) {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
				return
			}
			if !errors.Is(err, ErrKernel) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want ErrKernel with %q", err, c.err)
			}
		})
	}
}

// A block's sequences are what LZ4 says: bytes as they are, and parts that come again,
// also such as have just come.
func TestUnpackBlock(t *testing.T) {
	for _, c := range []struct {
		name, block, want string
		most              int
	}{
		{"as it is", "\x30abc", "abc", 3},
		{"again", "\x34abc\x03\x00\x10d", "abcabcabcabd"[:3] + "abcabcab" + "d", 12},
		{"one byte again and again", "\x1fx\x01\x00\x00\x10y", "x" + strings.Repeat("x", 19) + "y", 21},
		{"nothing", "", "", 0},
		{"cut off", "\x30ab", "", 3},
		{"before the beginning", "\x14a\x02\x00\x10b", "", 99},
		{"no distance", "\x14a\x00\x00\x10b", "", 99},
		{"too long", "\x30abc", "", 2},
		{"too long again", "\x1fx\x01\x00\x00\x10y", "", 19},
		{"a length without an end", "\xf0\xff", "", 9999},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := unpackBlock(nil, []byte(c.block), c.most)
			if (err == nil) != (c.want != "") || err == nil && string(got) != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// Whatever a kernel's file holds, what comes of it is within the bound.
func FuzzKernel(f *testing.F) {
	f.Add(kernel(elf.EM_X86_64, noteOwner, noteEntry))
	f.Add(bootImage(packed(kernel(elf.EM_X86_64, noteOwner, noteEntry))))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := vmlinux(b)
		if err != nil && !errors.Is(err, ErrKernel) || len(got) > maxKernel {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}

func FuzzUnpackLZ4(f *testing.F) {
	f.Add(packed([]byte("0123456789abcdefghij")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := unpackLZ4(b, 1<<20); err == nil && len(got) > 1<<20 {
			t.Errorf("got %d bytes", len(got))
		}
	})
}
