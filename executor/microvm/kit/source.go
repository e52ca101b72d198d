package kit

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// A Source says where a kernel and its modules are. Either Package, or Kernel and
// Modules.
type Source struct {
	Package string // a Debian package of a kernel, such as linux-image-6.1.0-57-cloud-amd64_….deb; read by dpkg-deb, never installed
	Kernel  string // a boot image (vmlinuz) or an unpacked kernel (vmlinux)
	Modules string // the folder with its modules, such as /lib/modules/6.1.0-57-cloud-amd64
}

// modules are those that a micro-VM needs, in the order in which they are loaded. A
// kernel may have them built in.
var modules = []string{"virtio_ring", "virtio", "virtio_mmio", "virtio_blk", "virtio_console", "squashfs", "overlay"}

const maxModule = 16 << 20

// parts are what a kit is made of.
type parts struct {
	kernel  []byte            // as it was found
	modules map[string][]byte // by name
	builtIn map[string]bool
}

// read reads the parts.
func (s Source) read(ctx context.Context) (parts, error) {
	p := parts{modules: map[string][]byte{}, builtIn: map[string]bool{}}
	var err error
	switch {
	case s.Package != "" && s.Kernel == "" && s.Modules == "":
		err = p.readPackage(ctx, s.Package)
	case s.Package == "" && s.Kernel != "" && s.Modules != "":
		err = p.readFolder(s)
	default:
		return p, errors.New("kit: name a package of a kernel, or a kernel and the folder of its modules")
	}
	if err != nil {
		return p, err
	}
	if p.kernel == nil {
		return p, fmt.Errorf("%w: there is none at boot/vmlinuz-*", ErrKernel)
	}
	for _, m := range modules {
		if p.modules[m] == nil && !p.builtIn[m] {
			return p, fmt.Errorf("%w: its module %s is missing, or is packed (only .ko is read)", ErrKernel, m)
		}
	}
	return p, nil
}

func (p *parts) readFolder(s Source) (err error) {
	if p.kernel, err = readFile(s.Kernel, maxKernel); err != nil {
		return fmt.Errorf("kit: the kernel: %w", err)
	}
	return filepath.WalkDir(s.Modules, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("kit: the modules: %w", err)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return p.module(name, func() ([]byte, error) { return readFile(name, maxModule) })
	})
}

// module takes the file where it is one that is needed.
func (p *parts) module(name string, read func() ([]byte, error)) error {
	base := path.Base(filepath.ToSlash(name))
	m, ok := strings.CutSuffix(base, ".ko")
	needed := false
	for _, n := range modules {
		needed = needed || n == m
	}
	if base != "modules.builtin" && (!ok || !needed) {
		return nil
	}
	b, err := read()
	if err != nil {
		return fmt.Errorf("kit: %s: %w", base, err)
	}
	if ok {
		p.modules[m] = b
		return nil
	}
	for line := range strings.Lines(string(b)) {
		p.builtIn[strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko")] = true
	}
	return nil
}

func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMost(f, most)
}

func readMost(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return b, err
}

// readPackage has dpkg-deb unpack the package into a pipe. What is in it is read by
// name, and nothing of it is run.
func (p *parts) readPackage(ctx context.Context, name string) error {
	tool, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return fmt.Errorf("kit: a Debian package is unpacked by dpkg-deb: %w; unpack it elsewhere (dpkg -x), and name the kernel and its modules", err)
	}
	if name, err = filepath.Abs(name); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, tool, "--fsys-tarfile", name)
	var said bytes.Buffer
	cmd.Env, cmd.Stderr = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C"}, &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := p.readTar(tar.NewReader(out))
	if readErr != nil {
		stop()
	}
	if err := cmd.Wait(); err != nil && readErr == nil {
		return fmt.Errorf("kit: unpacking %s: %w: %.300s", name, err, said.Bytes())
	}
	return readErr
}

func (p *parts) readTar(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("kit: the package: %w", err)
		}
		name := path.Clean("/" + h.Name)
		switch {
		case h.Typeflag != tar.TypeReg:
		case strings.HasPrefix(name, "/boot/vmlinuz-"):
			if p.kernel, err = readMost(r, maxKernel); err != nil {
				return fmt.Errorf("kit: the kernel: %w", err)
			}
		case strings.Contains(name, "/lib/modules/"):
			if err := p.module(name, func() ([]byte, error) { return readMost(r, maxModule) }); err != nil {
				return err
			}
		}
	}
}

// initrd returns the machine's first file system: the agent, and the modules in the
// order in which it loads them.
func (p *parts) initrd(agent []byte) []byte {
	var a archive
	for _, dir := range []string{"dev", "modules"} {
		a.folder(dir)
	}
	a.device("dev/console", 0o600, 5, 1)
	a.file("init", 0o755, agent)
	for i, m := range modules {
		if b := p.modules[m]; b != nil {
			a.file(fmt.Sprintf("modules/%02d-%s.ko", i, m), 0o644, b)
		}
	}
	return a.bytes()
}
