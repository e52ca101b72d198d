//go:build linux && (amd64 || arm64)

package calls

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// What is not on the list does not
// exist (ENOSYS): interpreters and C libraries look for new calls and go on with
// old ones, while any other error looks to them like a failure. What no script
// has a use for, and attacks on the kernel do, kills the script at once; that
// ending is told apart from all others.

// An Action is what the filter answers.
type Action uint32

const (
	Allow      Action = unix.SECCOMP_RET_ALLOW
	kill       Action = unix.SECCOMP_RET_KILL_PROCESS
	absent     Action = unix.SECCOMP_RET_ERRNO | Action(unix.ENOSYS)
	forbidden  Action = unix.SECCOMP_RET_ERRNO | Action(unix.EPERM)
	NoFamily   Action = unix.SECCOMP_RET_ERRNO | Action(unix.EAFNOSUPPORT)
	pretend    Action = unix.SECCOMP_RET_ERRNO      // of no error: it succeeds
	AskHost    Action = unix.SECCOMP_RET_USER_NOTIF // the host answers
	noProtocol Action = unix.SECCOMP_RET_ERRNO | Action(unix.EPROTONOSUPPORT)
	noSupport  Action = unix.SECCOMP_RET_ERRNO | Action(unix.ENOTSUP)
)

// A Rule is what becomes of one system call. Where it has tests, the first that
// holds decides, and otherwise what the rule says.
type Rule struct {
	tests []test
	Then  Action
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
	Then Action
}

// An exception is an argument with which a test of one value does not hold.
type exception struct {
	arg int
	is  uint32
}

// NewNamespaces are the flags of clone that make namespaces.
const NewNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Rules are those of all system calls that have one.
type Rules map[uintptr]Rule

// Base returns the rule of each system call that has one; the others are absent.
// Sockets are what is answered to one that does not only reach this box.
func Base(sockets Action) Rules {
	r := Rules{}
	for _, group := range []struct {
		Then Action
		list []uintptr
	}{{Allow, allowed}, {Allow, allowedHere}, {pretend, pretended}, {kill, killed}, {kill, killedHere}, {forbidden, refused}} {
		for _, nr := range group.list {
			r[nr] = Rule{Then: group.Then}
		}
	}
	// Threads and processes, but no namespaces. clone3 hides its flags behind a
	// pointer, where no filter can look; with ENOSYS the C library takes clone.
	r[unix.SYS_CLONE] = Rule{[]test{{arg: 0, mask: NewNamespaces, any: true, Then: forbidden}}, Allow}
	onlyUnix := Rule{[]test{{arg: 0, is: []uint32{unix.AF_UNIX}, Then: Allow}}, sockets}
	r[unix.SYS_SOCKET], r[unix.SYS_SOCKETPAIR] = onlyUnix, onlyUnix
	r[unix.SYS_PERSONALITY] = Rule{[]test{{arg: 0, is: []uint32{0, 0xffffffff}, Then: Allow}}, forbidden}
	r[unix.SYS_IOCTL] = Rule{[]test{{arg: 1, is: []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD}, Then: forbidden}}, Allow}
	r[unix.SYS_PRCTL] = Rule{[]test{
		{arg: 0, is: []uint32{unix.PR_SET_MM, unix.PR_SET_PTRACER, unix.PR_SET_KEEPCAPS, unix.PR_SET_SECUREBITS}, Then: forbidden},
		{arg: 0, is: []uint32{unix.PR_SET_DUMPABLE}, less: &exception{1, 0}, Then: forbidden}, // to hide is no harm
	}, Allow}
	return r
}

// Loopback returns the rules with TCP and UDP: neither raw sockets, nor any other
// family or protocol, by which more of the kernel is in reach.
func Loopback() Rules {
	r := Base(NoFamily)
	r[unix.SYS_SOCKET] = Rule{[]test{
		{arg: 0, is: []uint32{unix.AF_UNIX}, Then: Allow},
		{arg: 0, is: []uint32{unix.AF_INET, unix.AF_INET6}, not: true, Then: NoFamily},
		{arg: 1, mask: 0xf, is: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, not: true, Then: forbidden},
		{arg: 2, is: []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP}, not: true, Then: noProtocol},
	}, Allow}
	// A script's own wish for a buffer goes up to the host's bound, 4 MiB and more.
	r[unix.SYS_SETSOCKOPT] = Rule{[]test{
		{arg: 1, is: []uint32{unix.SOL_SOCKET}, not: true, Then: Allow},
		{arg: 2, is: []uint32{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE}, Then: pretend},
	}, Allow}
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

// NoWatches takes the calls away by which a script watches files. The kernel counts
// them to the host's user too, and an executor that cannot limit them for each run
// would let one run use up those of all.
func (r Rules) NoWatches() Rules {
	for _, nr := range watches {
		delete(r, nr)
	}
	return r
}

// NoAttributes refuses to hang attributes on files, as a file system does that holds
// none. A kernel may keep them where no limit of space counts them.
func (r Rules) NoAttributes() Rules {
	for _, nr := range []uintptr{unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR} {
		r[nr] = Rule{Then: noSupport}
	}
	return r
}

// Filter returns the filter of the rules, as the kernel reads it: 8 bytes an
// instruction.
func (r Rules) Filter() []byte { return encode(compile(r)) }

// compile makes the filter. System calls of another architecture, or of a second
// table of the same, kill.
func compile(rules Rules) []unix.SockFilter {
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
	rule Rule
}

func spans(rules Rules) []span {
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
		if n := len(list); n > 0 && list[n-1].rule.tests == nil && s.rule.tests == nil && list[n-1].rule.Then == s.rule.Then {
			return
		}
		list = append(list, s)
	}
	add(span{0, Rule{Then: absent}})
	for _, nr := range numbers {
		add(span{nr, rules[uintptr(nr)]})
		add(span{nr + 1, Rule{Then: absent}})
	}
	if foreign != 0 {
		add(span{foreign, Rule{Then: kill}})
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

func (r Rule) compile() []unix.SockFilter {
	var f []unix.SockFilter
	for _, t := range r.tests {
		f = append(f, unix.SockFilter{Code: loadWord, K: uint32(offsetArgs + 8*t.arg)})
		switch {
		case t.any:
			f = append(f, unix.SockFilter{Code: jumpAnySet, K: t.mask, Jf: 1}, unix.SockFilter{Code: answer, K: uint32(t.Then)})
			continue
		case t.mask != 0:
			f = append(f, unix.SockFilter{Code: and, K: t.mask})
		}
		if x := t.less; x != nil {
			f = append(f, unix.SockFilter{Code: jumpEqual, K: t.is[0], Jf: 3},
				unix.SockFilter{Code: loadWord, K: uint32(offsetArgs + 8*x.arg)},
				unix.SockFilter{Code: jumpEqual, K: x.is, Jt: 1},
				unix.SockFilter{Code: answer, K: uint32(t.Then)})
			continue
		}
		if t.not {
			for i, is := range t.is {
				f = append(f, unix.SockFilter{Code: jumpEqual, K: is, Jt: uint8(len(t.is) - i)})
			}
			f = append(f, unix.SockFilter{Code: answer, K: uint32(t.Then)})
			continue
		}
		for _, is := range t.is {
			f = append(f, unix.SockFilter{Code: jumpEqual, K: is, Jf: 1}, unix.SockFilter{Code: answer, K: uint32(t.Then)})
		}
	}
	return append(f, unix.SockFilter{Code: answer, K: uint32(r.Then)})
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
