//go:build linux && amd64

package microvm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// A monitor is a program that makes virtual machines. What is QEMU's alone stands
// behind it.
type monitor interface {
	// path is that of the program.
	path() string
	// describe says which it is, for people.
	describe() string
	// argv returns how it is started to make the machine. It has the machine's files
	// under the numbers that files gives them, and standard input that is at its end.
	argv(m machine) []string
	// build returns what the program is: another one may not know a machine that this one
	// saved.
	build() (bundle.Digest, error)
	// accelerated asks the monitor at the other end of the control socket whether the
	// processor runs its machine. It ends with the context, as the others do.
	accelerated(ctx context.Context, c *control) (bool, error)
	// save has the machine stop, and its memory be whole in the file that it was given;
	// the state of its devices goes into state.
	save(ctx context.Context, c *control, state *os.File) error
	// restore has a machine that waits go on where the one was that was saved. It reads
	// state from where that stands.
	restore(ctx context.Context, c *control, state *os.File) error
}

// A control is the host's end of a monitor's control socket.
type control struct {
	f   *os.File
	qmp *qmp
}

// A machine is one to be made.
type machine struct {
	kernel, initrd *os.File
	disk           *os.File // nil: none
	port           *os.File // the monitor's end of a socket, which is the machine's serial port
	control        *os.File // the monitor's end of a socket; nil: nobody controls it
	memory         int64    // bytes
	processors     int
	counter        int      // how many thousands the processor's counter counts in a second
	accelerate     bool     // by the processor, or not at all; otherwise it is interpreted
	ram            *os.File // its memory, to be saved; or that of the one that was saved; nil: the monitor's own
	waits          bool     // it waits to be restored; it changes a private copy of ram
}

// files are the machine's, in the order in which a monitor has them, from 3 up.
func (m machine) files() []*os.File {
	var list []*os.File
	for _, f := range []*os.File{m.kernel, m.initrd, m.port, m.disk, m.control, m.ram} {
		if f != nil {
			list = append(list, f)
		}
	}
	return list
}

// number returns under which number the monitor has the file.
func (m machine) number(f *os.File) int {
	for i, g := range m.files() {
		if f == g {
			return 3 + i
		}
	}
	return -1
}

// qemu is the monitor that there is.
type qemu struct{ file, version string }

// versionTime is how long a monitor may take to say its version.
const versionTime = 60 * time.Second

// openQEMU asks the program at the path what it is.
func openQEMU(path string) (qemu, error) {
	if !filepath.IsAbs(path) {
		return qemu{}, fmt.Errorf("%w: %q is not an absolute path", ErrMonitor, path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.Dir = []string{}, "/"
	text, err := cmd.Output()
	if err != nil {
		return qemu{}, fmt.Errorf("%w: asking %s for its version: %w; install QEMU (Debian: qemu-system-x86), or name another path", ErrMonitor, path, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	version, ok := strings.CutPrefix(line, "QEMU emulator version ")
	if !ok {
		return qemu{}, fmt.Errorf("%w: %s says that it is %.60q, and this executor drives QEMU", ErrMonitor, path, line)
	}
	version, _, _ = strings.Cut(version, " ")
	return qemu{path, version}, nil
}

func (q qemu) path() string     { return q.file }
func (q qemu) describe() string { return "QEMU " + q.version }

// commandLine is the kernel's. The rates keep it from measuring the processor's counter,
// which a busy host makes it do wrongly, or for ever; nor does it compare the counter
// with ticks, of which a busy host loses some. A machine has these ticks (pit): where the
// processor's own timer is taken for too slow, there would be none, and who sleeps would
// sleep for ever.
func commandLine(counter int) string {
	const hz = 250 // ticks a second of Debian's kernels
	return fmt.Sprintf("quiet panic=-1 tsc_early_khz=%d lpj=%d tsc=reliable no_timer_check random.trust_cpu=on rdinit=/init", counter, counter*1000/hz)
}

func (q qemu) argv(m machine) []string {
	opened := func(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(m.number(f)) }
	accelerator := "tcg,tb-size=64"
	if m.accelerate {
		accelerator = "kvm"
	}
	kind := "microvm,pit=on,pic=on,rtc=off,isa-serial=off,acpi=on,dump-guest-core=off"
	if m.ram != nil {
		kind += ",memory-backend=ram"
	}
	argv := []string{
		q.file, "-M", kind, "-accel", accelerator, "-cpu", "max", "-smp", strconv.Itoa(m.processors),
		"-m", strconv.FormatInt(m.memory>>20, 10) + "M", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-kernel", opened(m.kernel), "-initrd", opened(m.initrd), "-append", commandLine(m.counter),
		"-device", "virtio-serial-device", "-chardev", "socket,id=port,fd=" + strconv.Itoa(m.number(m.port)), "-device", "virtserialport,chardev=port,name=tracon",
	}
	if m.disk != nil {
		argv = append(argv, "-drive", "if=none,id=disk,format=raw,readonly=on,file.locking=off,file="+opened(m.disk), "-device", "virtio-blk-device,drive=disk")
	}
	if m.control != nil {
		argv = append(argv, "-chardev", "socket,id=control,fd="+strconv.Itoa(m.number(m.control)), "-mon", "chardev=control,mode=control")
	}
	if m.ram != nil {
		share := "on"
		if m.waits {
			share = "off"
		}
		argv = append(argv, "-object", fmt.Sprintf("memory-backend-file,id=ram,size=%d,mem-path=%s,share=%s,dump=off", m.memory, opened(m.ram), share))
	}
	if m.waits {
		argv = append(argv, "-incoming", "defer")
	}
	return argv
}

func (q qemu) build() (d bundle.Digest, err error) {
	f, err := os.Open(q.file)
	if err != nil {
		return d, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(d[:0])
	return d, err
}

// speak does f at the control socket until the context is done.
func (c *control) speak(ctx context.Context, f func(*qmp) error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.f.SetDeadline(time.Now()) })
	defer stop()
	if c.qmp == nil {
		c.qmp = newQMP(c.f)
		if err := c.qmp.greet(); err != nil {
			return err
		}
	}
	return f(c.qmp)
}

func (q qemu) accelerated(ctx context.Context, c *control) (bool, error) {
	var kvm struct {
		Enabled bool `json:"enabled"`
		Present bool `json:"present"`
	}
	err := c.speak(ctx, func(q *qmp) error { return q.call("query-kvm", nil, &kvm) })
	return kvm.Enabled, err
}

func (q qemu) save(ctx context.Context, c *control, state *os.File) error {
	return c.speak(ctx, func(q *qmp) error { return q.migrate("migrate", c.f, state) })
}

func (q qemu) restore(ctx context.Context, c *control, state *os.File) error {
	return c.speak(ctx, func(q *qmp) error { return q.migrate("migrate-incoming", c.f, state) })
}
