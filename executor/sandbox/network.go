//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"strings"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

// A box has a network namespace of its own in any case. Without a network its
// only interface is down, and the filter and Landlock know no sockets of the
// internet; with loopback the interface is up and there are TCP and UDP, which
// lead nowhere else.

// filterOf returns the filter of the box, and whether it asks the host. With
// loopback it need not: a socket that is refused there is none of the network.
func (s *setup) filterOf(f frame) (filter []byte, asks bool) {
	if f.network == gate.Loopback {
		return s.loopback, false
	}
	return s.filter, s.asks
}

// landlockOf returns the rules of Landlock for the box.
func (s *setup) landlockOf(f frame) landlock {
	l := s.landlock
	if f.network == gate.Loopback {
		l.attr.Handled_access_net = 0
	}
	return l
}

// raise adds the steps that set the interface up, which brings both addresses.
func (p *program) raise() {
	p.stage = stageLoopback
	request := make([]byte, 40) // struct ifreq
	copy(request, "lo")
	request[16] = unix.IFF_UP
	socket := p.scratch()
	p.call(unix.SYS_SOCKET, number(unix.AF_INET), number(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), number(0)).into(socket)
	p.call(unix.SYS_IOCTL, socket.value(), number(unix.SIOCSIFFLAGS), p.bytes(request))
	p.call(unix.SYS_CLOSE, socket.value())
	// All connections of a host share one bound: one of a run holds 128 KiB each way,
	// in place of megabytes. Where /proc/sys cannot be written, that is not held. What
	// holds all sockets of a run together, and those of UDP too, is its cgroup.
	begin := len(p.steps)
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		p.write("/proc/sys/net/ipv4/"+name, "4096 65536 131072")
	}
	for _, step := range p.steps[begin:] {
		step.mayFail()
	}
}

// connects returns the arguments by which the socket of the attempt before
// connects to a port of an IPv4 address.
func connects(a, b, c, d byte, port uint16) func(*program) []value {
	return func(p *program) []value {
		address := append([]byte{unix.AF_INET, 0, byte(port >> 8), byte(port), a, b, c, d}, make([]byte, 8)...)
		return []value{p.last.value(), p.bytes(address), number(len(address))}
	}
}

// loopbackAttempts are what a box with loopback must allow and withstand.
func loopbackAttempts() []attempt {
	var list []attempt
	add := func(what string, nr uintptr, args func(*program) []value, want ...unix.Errno) {
		list = append(list, attempt{wall: wallLoopback, what: what, nr: nr, args: args, want: want})
	}
	tcp, udp := numbers(unix.AF_INET, unix.SOCK_STREAM, 0), numbers(unix.AF_INET, unix.SOCK_DGRAM, 0)
	add("making a unix socket", unix.SYS_SOCKET, numbers(unix.AF_UNIX, unix.SOCK_STREAM, 0))
	add("making a socket of TCP", unix.SYS_SOCKET, tcp)
	add("connecting to 127.0.0.1, where nobody listens", unix.SYS_CONNECT, connects(127, 0, 0, 1, 1), unix.ECONNREFUSED)
	add("making a socket of UDP", unix.SYS_SOCKET, udp)
	add("finding a way to the internet", unix.SYS_CONNECT, connects(192, 0, 2, 1, 9), unix.ENETUNREACH)
	add("making another one", unix.SYS_SOCKET, udp)
	add("finding a way to the metadata service", unix.SYS_CONNECT, connects(169, 254, 169, 254, 80), unix.ENETUNREACH)
	add("making a third", unix.SYS_SOCKET, udp)
	add("changing an interface", unix.SYS_IOCTL, func(p *program) []value {
		return []value{p.last.value(), number(unix.SIOCSIFFLAGS), p.bytes(append([]byte("lo"), make([]byte, 38)...))}
	}, unix.EPERM)
	for _, s := range []struct {
		name                   string
		family, kind, protocol int
		want                   unix.Errno
	}{
		{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, unix.EPERM}, {"ping", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, unix.EPROTONOSUPPORT},
		{"SCTP", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, unix.EPROTONOSUPPORT}, {"netlink", unix.AF_NETLINK, unix.SOCK_DGRAM, 0, unix.EAFNOSUPPORT},
		{"packet", unix.AF_PACKET, unix.SOCK_DGRAM, 0, unix.EAFNOSUPPORT}, {"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT},
		{"crypto", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, unix.EAFNOSUPPORT},
	} {
		add("making a socket of "+s.name, unix.SYS_SOCKET, numbers(s.family, s.kind, s.protocol), s.want)
	}
	return list
}

// proveLoopback holds that a box with loopback has that and no more. Where it
// cannot stand, runs that are to have it are refused, and all others are not.
func (e *Executor) proveLoopback() error {
	list := loopbackAttempts()
	found, err := e.tryWith(gate.Loopback, probe{list, e.limit(8)})
	if err != nil {
		return err
	}
	return found.hold(list)
}

// mayHave says why the executor cannot give a run the network, or nil.
func (e *Executor) mayHave(n gate.Network) error {
	if n == gate.Loopback && e.noLoopback != nil {
		return fmt.Errorf("%w: the policy gives the run a loopback, which cannot stand on this host: %w", executor.ErrUnavailable, e.noLoopback)
	}
	return nil
}

// wallOfLoopback returns the wall around runs that have loopback, where it stands.
func (e *Executor) wallOfLoopback(w executor.Wall) executor.Wall {
	if e.noLoopback == nil {
		w.Proof += "; " + e.limits.SocketsText()
		return w
	}
	return executor.Wall{Name: w.Name, Proof: "a run that is to have it is refused: " + strings.ReplaceAll(e.noLoopback.Error(), "\n", "; "), Remedy: "none is needed where no policy asks for loopback"}
}
