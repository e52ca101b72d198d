//go:build linux && (amd64 || arm64)

package calls

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
func expected(r Rule, args [6]uint64) Action {
	for _, t := range r.tests {
		arg := uint32(args[t.arg])
		if t.mask != 0 && !t.any {
			arg &= t.mask
		}
		switch {
		case t.not && !slices.Contains(t.is, arg):
			return t.Then
		case t.not:
			continue
		case t.less != nil && arg == t.is[0] && uint32(args[t.less.arg]) == t.less.is:
			continue
		case t.any && arg&t.mask != 0:
			return t.Then
		case !t.any && slices.Contains(t.is, arg):
			return t.Then
		}
	}
	return r.Then
}

// B2: the filter that the kernel gets says of each system call what the table says,
// whatever its arguments and their upper halves are.
func TestFilterIsTheTable(t *testing.T) {
	t.Run("asking the host", func(t *testing.T) { isTable(t, Base(AskHost)) })
	t.Run("refusing by itself", func(t *testing.T) { isTable(t, Base(NoFamily)) })
	t.Run("without watches", func(t *testing.T) { isTable(t, Base(NoFamily).NoWatches()) })
	t.Run("without attributes", func(t *testing.T) { isTable(t, Base(NoFamily).NoWatches().NoAttributes()) })
	t.Run("with loopback", func(t *testing.T) { isTable(t, Loopback()) })
}

// With loopback there are TCP, UDP and unix sockets, and nothing else.
func TestLoopbackSockets(t *testing.T) {
	f := decode(encode(compile(Loopback())))
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	for _, tc := range []struct {
		name string
		args [6]uint64
		want Action
	}{
		{"TCP", [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, Allow},
		{"TCP by name, with flags", [6]uint64{unix.AF_INET6, unix.SOCK_STREAM | flags, unix.IPPROTO_TCP}, Allow},
		{"UDP", [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM | flags, unix.IPPROTO_UDP}, Allow},
		{"unix", [6]uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, Allow},
		{"upper halves do not count", [6]uint64{1<<32 | unix.AF_INET, 1<<32 | unix.SOCK_RAW, 1 << 32}, forbidden},
		{"raw", [6]uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP}, forbidden},
		{"raw with flags", [6]uint64{unix.AF_INET6, unix.SOCK_RAW | flags, unix.IPPROTO_ICMPV6}, forbidden},
		{"packet, the old way", [6]uint64{unix.AF_INET, unix.SOCK_PACKET}, forbidden},
		{"datagrams in order", [6]uint64{unix.AF_INET, unix.SOCK_SEQPACKET}, forbidden},
		{"ping", [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, noProtocol},
		{"SCTP", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, noProtocol},
		{"TCP over several ways", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, noProtocol},
		{"netlink", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW}, NoFamily},
		{"packet", [6]uint64{unix.AF_PACKET, unix.SOCK_DGRAM}, NoFamily},
		{"vsock", [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, NoFamily},
		{"crypto", [6]uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, NoFamily},
		{"no family", [6]uint64{0, unix.SOCK_STREAM}, NoFamily},
	} {
		if got := answerOf(t, f, arch, unix.SYS_SOCKET, tc.args); got != uint32(tc.want) {
			t.Errorf("%s: got %#x, want %#x", tc.name, got, uint32(tc.want))
		}
		if got := answerOf(t, f, arch, unix.SYS_SOCKETPAIR, tc.args); (got == uint32(Allow)) != (uint32(tc.args[0]) == unix.AF_UNIX) {
			t.Errorf("a pair of %s: got %#x", tc.name, got)
		}
	}
}

// B10: a buffer of a socket is never as large as a script wishes; all else that it
// may set it sets.
func TestLoopbackBuffers(t *testing.T) {
	f := decode(encode(compile(Loopback())))
	for _, tc := range []struct {
		name string
		args [6]uint64
		want Action
	}{
		{"SO_SNDBUF", [6]uint64{3, unix.SOL_SOCKET, unix.SO_SNDBUF}, pretend},
		{"SO_RCVBUF", [6]uint64{3, unix.SOL_SOCKET, unix.SO_RCVBUF}, pretend},
		{"SO_SNDBUFFORCE", [6]uint64{3, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE}, pretend},
		{"SO_RCVBUFFORCE", [6]uint64{3, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE}, pretend},
		{"upper halves do not count", [6]uint64{3, 1<<32 | unix.SOL_SOCKET, 1<<32 | unix.SO_RCVBUF}, pretend},
		{"SO_REUSEADDR", [6]uint64{3, unix.SOL_SOCKET, unix.SO_REUSEADDR}, Allow},
		{"an option of TCP with the same number", [6]uint64{3, unix.IPPROTO_TCP, unix.SO_RCVBUF}, Allow},
	} {
		if got := answerOf(t, f, arch, unix.SYS_SETSOCKOPT, tc.args); got != uint32(tc.want) {
			t.Errorf("%s: got %#x, want %#x", tc.name, got, uint32(tc.want))
		}
	}
}

func isTable(t *testing.T, table Rules) {
	f := decode(encode(compile(table)))
	if len(f) == 0 || len(f) >= 4096 {
		t.Fatalf("the filter has %d instructions", len(f))
	}
	interesting := []uint64{
		0, 1, 2, 3, 6, 10, 16, 17, 38, 40, 132, 262, unix.SOCK_CLOEXEC | unix.SOCK_RAW, unix.SOCK_CLOEXEC | unix.SOCK_STREAM, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.PR_SET_DUMPABLE, unix.PR_SET_MM, unix.PR_SET_PTRACER, unix.PR_SET_KEEPCAPS, unix.PR_SET_SECUREBITS,
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
			r = Rule{Then: absent}
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
	for _, nr := range slices.Concat(allowed, allowedHere, pretended, killed, killedHere, refused) {
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
