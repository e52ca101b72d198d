package kit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
)

// AddDisk makes the disk of the runtime, unless the kit has it: a squashfs, which
// mksquashfs makes of the runtime's files, which are held against their digest before.
// Nothing in it is packed: a machine without
// KVM would spend more time unpacking than a run takes.
//
// # Errors
//
// One that wraps ErrNotPrepared before [Prepare]; as for [image.Image.Verify]; what
// mksquashfs says.
func AddDisk(ctx context.Context, dir string, runtime *image.Image) (Info, error) {
	return change(ctx, dir, func(l *list) error {
		if l.Kernel.IsZero() {
			return ErrNotPrepared
		}
		if _, ok := l.Disks[runtime.Digest().String()]; ok {
			return nil
		}
		if err := runtime.Verify(ctx, func(uint64) {}); err != nil {
			return fmt.Errorf("kit: %w", err)
		}
		d, err := makeDisk(ctx, dir, runtime.Root())
		l.Disks[runtime.Digest().String()] = d
		return err
	})
}

// KeepDisks removes the disks of all runtimes for which keep is false.
func KeepDisks(ctx context.Context, dir string, keep func(runtime bundle.Digest) bool) (Info, error) {
	return change(ctx, dir, func(l *list) error {
		for name := range l.Disks {
			if d, err := bundle.ParseDigest(name); err != nil || !keep(d) {
				delete(l.Disks, name)
			}
		}
		return nil
	})
}

func makeDisk(ctx context.Context, dir string, root *os.File) (d bundle.Digest, err error) {
	tool, err := exec.LookPath("mksquashfs")
	if err != nil {
		return d, fmt.Errorf("kit: the disk of a runtime is made by mksquashfs: %w; install squashfs-tools", err)
	}
	made, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return d, fmt.Errorf("kit: %w", err)
	}
	name, err := filepath.Abs(made.Name())
	if err == nil {
		cmd := exec.CommandContext(ctx, tool, "/proc/self/fd/3/.", name, "-noappend", "-all-root", "-no-xattrs", "-noI", "-noD", "-noF", "-noX",
			"-no-progress", "-quiet", "-mkfs-time", "0", "-processors", "1")
		cmd.Env, cmd.ExtraFiles = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}, []*os.File{root}
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err = cmd.Run(); err != nil {
			err = fmt.Errorf("mksquashfs: %w: %.300s", err, said.Bytes())
		}
	}
	if err == nil {
		h := sha256.New()
		if _, err = io.Copy(h, made); err == nil {
			h.Sum(d[:0])
		}
	}
	return d, settle(made, err, filepath.Join(dir, file(d)))
}
