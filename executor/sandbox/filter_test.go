//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// decode reads a filter back from what the kernel gets.
func decode(b []byte) []unix.SockFilter {
	var f []unix.SockFilter
	for ; len(b) >= 8; b = b[8:] {
		f = append(f, unix.SockFilter{Code: binary.LittleEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.LittleEndian.Uint32(b[4:])})
	}
	return f
}

// answerOf runs the filter as the kernel does, on one call of a process.
func answerOf(t *testing.T, f []unix.SockFilter, arch, nr uint32, args [6]uint64) uint32 {
	t.Helper()
	data := binary.LittleEndian.AppendUint32(nil, nr)
	data = binary.LittleEndian.AppendUint32(data, arch)
	data = append(data, make([]byte, 8)...)
	for _, a := range args {
		data = binary.LittleEndian.AppendUint64(data, a)
	}
	var acc uint32
	for pc := 0; pc < len(f); pc++ {
		i := f[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(i.Jt)
			} else {
				pc += int(i.Jf)
			}
		}
		switch i.Code {
		case 0x20: // load a word
			acc = binary.LittleEndian.Uint32(data[i.K:])
		case 0x15:
			jump(acc == i.K)
		case 0x35:
			jump(acc >= i.K)
		case 0x45:
			jump(acc&i.K != 0)
		case 0x54:
			acc &= i.K
		case 0x05:
			pc += int(i.K)
		case 0x06:
			return i.K
		default:
			t.Fatalf("instruction %d is %#x", pc, i.Code)
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0
}

// expected says what the rules mean, without any of the filter's own code.
func expected(r rule, args [6]uint64) action {
	for _, t := range r.tests {
		arg := uint32(args[t.arg])
		switch {
		case t.less != nil && arg == t.is[0] && uint32(args[t.less.arg]) == t.less.is:
			continue
		case t.any && arg&t.mask != 0:
			return t.then
		case !t.any && slices.Contains(t.is, arg):
			return t.then
		}
	}
	return r.then
}

// B2: the filter that the kernel gets says of each system call what the table says,
// whatever its arguments and their upper halves are.
func TestFilterIsTheTable(t *testing.T) {
	t.Run("asking the host", func(t *testing.T) { isTable(t, askHost) })
	t.Run("refusing by itself", func(t *testing.T) { isTable(t, noFamily) })
}

func isTable(t *testing.T, sockets action) {
	table := rules(sockets)
	f := decode(encode(compile(table)))
	if len(f) == 0 || len(f) >= 4096 {
		t.Fatalf("the filter has %d instructions", len(f))
	}
	interesting := []uint64{
		0, 1, 2, 10, 16, 17, 38, 40, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.PR_SET_DUMPABLE, unix.PR_SET_MM, unix.PR_SET_PTRACER,
		0xffffffff, unix.CLONE_NEWUSER, unix.CLONE_NEWNET | 17, 0x1200011, 0x3d0f00, 1<<32 | unix.TIOCSTI, 1<<32 | unix.AF_UNIX, 1<<63 | unix.CLONE_NEWNS, 1 << 32,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func() uint64 {
		if rng.IntN(2) == 0 {
			return interesting[rng.IntN(len(interesting))]
		}
		return rng.Uint64()
	}
	for nr := range uint32(1024) {
		r, ok := table[uintptr(nr)]
		if !ok {
			r = rule{then: absent}
		}
		tries := 20
		if r.tests != nil {
			tries = 5000
		}
		for range tries {
			args := [6]uint64{pick(), pick(), pick(), pick(), pick(), pick()}
			if got, want := answerOf(t, f, arch, nr, args), uint32(expected(r, args)); got != want {
				t.Fatalf("call %d with %#x: got %#x, want %#x", nr, args, got, want)
			}
		}
		for _, other := range []uint32{0, 0x40000003, arch ^ 1, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM} {
			if got := answerOf(t, f, other, nr, [6]uint64{}); got != uint32(kill) {
				t.Fatalf("call %d of architecture %#x: got %#x", nr, other, got)
			}
		}
		if foreign != 0 {
			if got := answerOf(t, f, arch, nr|foreign, [6]uint64{}); got != uint32(kill) {
				t.Fatalf("call %d of the second table: got %#x", nr, got)
			}
		}
	}
}

// The table has no call twice: a later group would silently win.
func TestNoCallIsListedTwice(t *testing.T) {
	seen := map[uintptr]bool{unix.SYS_CLONE: true, unix.SYS_SOCKET: true, unix.SYS_SOCKETPAIR: true, unix.SYS_PERSONALITY: true, unix.SYS_IOCTL: true, unix.SYS_PRCTL: true}
	for _, nr := range slices.Concat(allowed, allowedHere, killed, killedHere, refused) {
		if seen[nr] {
			t.Errorf("call %d is listed twice", nr)
		}
		seen[nr] = true
	}
	for _, nr := range []uintptr{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_KEYCTL, unix.SYS_SPLICE, unix.SYS_USERFAULTFD, unix.SYS_MEMFD_CREATE, unix.SYS_FANOTIFY_INIT} {
		if seen[nr] {
			t.Errorf("call %d must be absent", nr)
		}
	}
}
