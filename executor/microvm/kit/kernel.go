package kit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxKernel is the largest kernel that is unpacked, in bytes. One of Debian for clouds
// has 60 MB.
const maxKernel = 256 << 20

// ErrKernel is wrapped by the error for a file that no micro-VM can be started from.
var ErrKernel = errors.New("kit: a micro-VM cannot be started from this kernel")

// vmlinux returns the kernel that a machine without firmware starts: an ELF file with
// the entry of PVH. It takes one, or a boot image (vmlinuz) whose payload is one that
// was packed with LZ4, as Debian's are.
func vmlinux(b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte(elf.ELFMAG)) {
		payload, err := payload(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKernel, err)
		}
		if b, err = unpackLZ4(payload, maxKernel); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKernel, err)
		}
	}
	if err := hasEntry(b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKernel, err)
	}
	return b, nil
}

// Places in the head of a boot image (Documentation/arch/x86/boot.rst of Linux).
const (
	atSetupSectors  = 0x1f1
	atMagic         = 0x202
	atVersion       = 0x206
	atPayload       = 0x248
	atPayloadLength = 0x24c
	headEnd         = 0x250
	sector          = 512
)

// payload returns what is packed in a boot image.
func payload(b []byte) ([]byte, error) {
	if len(b) < headEnd || string(b[atMagic:atMagic+4]) != "HdrS" {
		return nil, errors.New("it is neither an ELF file nor a boot image")
	}
	if v := binary.LittleEndian.Uint16(b[atVersion:]); v < 0x208 {
		return nil, fmt.Errorf("its boot protocol %#x does not say where its payload is", v)
	}
	setup := uint64(b[atSetupSectors])
	if setup == 0 {
		setup = 4 // as the protocol has it
	}
	from := (setup+1)*sector + uint64(binary.LittleEndian.Uint32(b[atPayload:]))
	to := from + uint64(binary.LittleEndian.Uint32(b[atPayloadLength:]))
	if from > to || to > uint64(len(b)) {
		return nil, errors.New("its payload lies outside of it")
	}
	return b[from:to], nil
}

// The note by which a kernel says where a hypervisor may start it (PVH).
const (
	noteOwner = "Xen"
	noteEntry = 18 // XEN_ELFNOTE_PHYS32_ENTRY
)

// hasEntry holds that the ELF file is of this processor and has the entry of PVH.
func hasEntry(b []byte) error {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("it is for %s", f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<20 {
			continue
		}
		notes := make([]byte, p.Filesz)
		if _, err := p.ReadAt(notes, 0); err != nil {
			return err
		}
		for len(notes) >= 12 {
			name, size, kind := binary.LittleEndian.Uint32(notes), binary.LittleEndian.Uint32(notes[4:]), binary.LittleEndian.Uint32(notes[8:])
			notes = notes[12:]
			whole := aligned(name) + aligned(size)
			if whole > uint64(len(notes)) {
				break
			}
			if kind == noteEntry && string(bytes.TrimRight(notes[:name], "\x00")) == noteOwner {
				return nil
			}
			notes = notes[whole:]
		}
	}
	return errors.New("it has no entry of PVH (CONFIG_PVH)")
}

func aligned(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
