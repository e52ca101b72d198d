//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// The list of system calls that a script may make. What is not on it does not
// exist (ENOSYS): interpreters and C libraries look for new calls and go on with
// old ones, while any other error looks to them like a failure. What no script
// has a use for, and attacks on the kernel do, kills the script at once; that
// ending is told apart from all others.

// An action is what the filter answers.
type action uint32

const (
	allow     action = unix.SECCOMP_RET_ALLOW
	kill      action = unix.SECCOMP_RET_KILL_PROCESS
	absent    action = unix.SECCOMP_RET_ERRNO | action(unix.ENOSYS)
	forbidden action = unix.SECCOMP_RET_ERRNO | action(unix.EPERM)
	noFamily  action = unix.SECCOMP_RET_ERRNO | action(unix.EAFNOSUPPORT)
	pretend   action = unix.SECCOMP_RET_ERRNO      // of no error: it succeeds
	askHost   action = unix.SECCOMP_RET_USER_NOTIF // the host answers, see refusals
)

// A rule is what becomes of one system call. Where it has tests, the first that
// holds decides, and otherwise what the rule says.
type rule struct {
	tests []test
	then  action
}

// A test looks at the low 32 bits of an argument, which is what the kernel looks
// at in these calls: the upper bits can be anything.
type test struct {
	arg  int
	mask uint32 // of the bits that are compared; zero: all
	is   []uint32
	any  bool // instead: any bit of the mask is set
	not  bool // instead: it is none of them
	less *exception
	then action
}

// An exception is an argument with which a test of one value does not hold.
type exception struct {
	arg int
	is  uint32
}

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// rules returns the rule of each system call that has one; the others are absent.
// Sockets are what is answered to one that does not only reach this box.
func rules(sockets action) map[uintptr]rule {
	r := map[uintptr]rule{}
	for _, group := range []struct {
		then action
		list []uintptr
	}{{allow, allowed}, {allow, allowedHere}, {pretend, pretended}, {kill, killed}, {kill, killedHere}, {forbidden, refused}} {
		for _, nr := range group.list {
			r[nr] = rule{then: group.then}
		}
	}
	// Threads and processes, but no namespaces. clone3 hides its flags behind a
	// pointer, where no filter can look; with ENOSYS the C library takes clone.
	r[unix.SYS_CLONE] = rule{[]test{{arg: 0, mask: newNamespaces, any: true, then: forbidden}}, allow}
	onlyUnix := rule{[]test{{arg: 0, is: []uint32{unix.AF_UNIX}, then: allow}}, sockets}
	r[unix.SYS_SOCKET], r[unix.SYS_SOCKETPAIR] = onlyUnix, onlyUnix
	r[unix.SYS_PERSONALITY] = rule{[]test{{arg: 0, is: []uint32{0, 0xffffffff}, then: allow}}, forbidden}
	r[unix.SYS_IOCTL] = rule{[]test{{arg: 1, is: []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD}, then: forbidden}}, allow}
	r[unix.SYS_PRCTL] = rule{[]test{
		{arg: 0, is: []uint32{unix.PR_SET_MM, unix.PR_SET_PTRACER}, then: forbidden},
		{arg: 0, is: []uint32{unix.PR_SET_DUMPABLE}, less: &exception{1, 0}, then: forbidden}, // to hide is no harm
	}, allow}
	return r
}

// The fields of what a filter looks at (struct seccomp_data).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

const (
	loadWord    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpAnySet  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	jump        = unix.BPF_JMP | unix.BPF_JA
	and         = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	answer      = unix.BPF_RET | unix.BPF_K
)

// compile makes the filter. System calls of another architecture, or of a second
// table of the same, kill.
func compile(rules map[uintptr]rule) []unix.SockFilter {
	f := []unix.SockFilter{
		{Code: loadWord, K: offsetArch},
		{Code: jumpEqual, K: arch, Jt: 1},
		{Code: answer, K: uint32(kill)},
		{Code: loadWord, K: offsetNumber},
	}
	return append(f, tree(spans(rules))...)
}

// A span is a range of system calls, up to where the next begins, that have the
// same rule.
type span struct {
	from uint32
	rule rule
}

func spans(rules map[uintptr]rule) []span {
	numbers := make([]uint32, 0, len(rules))
	for nr := range rules {
		numbers = append(numbers, uint32(nr))
	}
	slices.Sort(numbers)
	var list []span
	add := func(s span) {
		if n := len(list); n > 0 && list[n-1].from == s.from {
			list = list[:n-1]
		}
		if n := len(list); n > 0 && list[n-1].rule.tests == nil && s.rule.tests == nil && list[n-1].rule.then == s.rule.then {
			return
		}
		list = append(list, s)
	}
	add(span{0, rule{then: absent}})
	for _, nr := range numbers {
		add(span{nr, rules[uintptr(nr)]})
		add(span{nr + 1, rule{then: absent}})
	}
	if foreign != 0 {
		add(span{foreign, rule{then: kill}})
	}
	return list
}

// tree searches the number by halves: the kernel runs a filter once for each
// number when it is installed, and a list would take it ten times as long.
func tree(list []span) []unix.SockFilter {
	if len(list) == 1 {
		return list[0].rule.compile()
	}
	half := len(list) / 2
	below, above := tree(list[:half]), tree(list[half:])
	f := []unix.SockFilter{{Code: jumpAtLeast, K: list[half].from, Jf: 1}, {Code: jump, K: uint32(len(below))}}
	if len(below) < 256 {
		f = []unix.SockFilter{{Code: jumpAtLeast, K: list[half].from, Jt: uint8(len(below))}}
	}
	return slices.Concat(f, below, above)
}

func (r rule) compile() []unix.SockFilter {
	var f []unix.SockFilter
	for _, t := range r.tests {
		f = append(f, unix.SockFilter{Code: loadWord, K: uint32(offsetArgs + 8*t.arg)})
		switch {
		case t.any:
			f = append(f, unix.SockFilter{Code: jumpAnySet, K: t.mask, Jf: 1}, unix.SockFilter{Code: answer, K: uint32(t.then)})
			continue
		case t.mask != 0:
			f = append(f, unix.SockFilter{Code: and, K: t.mask})
		}
		if x := t.less; x != nil {
			f = append(f, unix.SockFilter{Code: jumpEqual, K: t.is[0], Jf: 3},
				unix.SockFilter{Code: loadWord, K: uint32(offsetArgs + 8*x.arg)},
				unix.SockFilter{Code: jumpEqual, K: x.is, Jt: 1},
				unix.SockFilter{Code: answer, K: uint32(t.then)})
			continue
		}
		if t.not {
			for i, is := range t.is {
				f = append(f, unix.SockFilter{Code: jumpEqual, K: is, Jt: uint8(len(t.is) - i)})
			}
			f = append(f, unix.SockFilter{Code: answer, K: uint32(t.then)})
			continue
		}
		for _, is := range t.is {
			f = append(f, unix.SockFilter{Code: jumpEqual, K: is, Jf: 1}, unix.SockFilter{Code: answer, K: uint32(t.then)})
		}
	}
	return append(f, unix.SockFilter{Code: answer, K: uint32(r.then)})
}

// encode writes the filter as the kernel reads it.
func encode(f []unix.SockFilter) []byte {
	var b []byte
	for _, i := range f {
		b = binary.LittleEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.LittleEndian.AppendUint32(b, i.K)
	}
	return b
}
