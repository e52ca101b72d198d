//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// renounce adds what the first process of a box gives up before it knows its call.
func (s *setup) renounce(p *program) {
	p.stage = stageName
	p.call(unix.SYS_SETHOSTNAME, p.text("sandbox"), number(len("sandbox")))
	p.stage = stageSignals
	none := p.bytes(make([]byte, 32))
	for sig := 1; sig < 65; sig++ {
		if sig != int(unix.SIGKILL) && sig != int(unix.SIGSTOP) {
			p.call(unix.SYS_RT_SIGACTION, number(sig), none, number(0), number(8))
		}
	}
	p.call(unix.SYS_RT_SIGPROCMASK, number(unix.SIG_SETMASK), none, number(0), number(8))
	// There may be no keyrings, or no room for another: none can be reached then, or
	// the filter alone keeps the script from the host's.
	p.stage = stageKeyring
	p.call(unix.SYS_KEYCTL, number(unix.KEYCTL_JOIN_SESSION_KEYRING), number(0)).mayFail()
	p.stage = stagePrivileges
	p.call(unix.SYS_PRCTL, number(unix.PR_SET_NO_NEW_PRIVS), number(1), number(0), number(0), number(0))
	p.stage = stageCaps
	p.call(unix.SYS_PRCTL, number(unix.PR_SET_SECUREBITS), number(secureBits), number(0), number(0), number(0))
	p.call(unix.SYS_PRCTL, number(unix.PR_CAP_AMBIENT), number(unix.PR_CAP_AMBIENT_CLEAR_ALL), number(0), number(0), number(0))
	for c := range s.lastCap + 1 {
		p.call(unix.SYS_PRCTL, number(unix.PR_CAPBSET_DROP), number(c), number(0), number(0), number(0))
	}
}

// secureBits take all meaning from being root, for good.
const secureBits = 0xef

// The files that come with a call.
const (
	callProgram = iota
	callStdin
	callStdout
	callStderr
	callFiles
)

// came is the descriptor of a file that came with the call.
func came(file int) value { return variable(rightsAt + 16 + 4*file).value() }

// receive adds the steps that wait for a call and go on with its program.
func (p *program) receive() {
	p.say('W')
	p.stage = stageCall
	part := p.record(words(messageAt, 16))
	header := p.record(words(0, 0, part.n, 1, rightsAt, 16+4*callFiles, 0))
	p.call(unix.SYS_RECVMSG, number(statusFD), header, number(unix.MSG_CMSG_CLOEXEC)).must(16)
	p.call(unix.SYS_MMAP, number(callBase), variable(messageAt).value(), number(unix.PROT_READ|unix.PROT_WRITE),
		number(unix.MAP_PRIVATE|unix.MAP_FIXED), came(callProgram), number(0)).must(callBase)
	// A call that succeeds with 0 and changes nothing, to go there.
	p.branchFrom(unix.SYS_RT_SIGPROCMASK, number(0), number(0), number(0), number(8)).far = true
}

// complete writes the program of a call: it lays out the files, gives up what the
// box still had, and starts the process that waits for the host and becomes the
// script.
func (s *setup) complete(o order) *program {
	p := newProgram(callBase)
	p.stage = stageDescs
	for to, from := range []int{callStdin, callStdout, callStderr} {
		p.call(unix.SYS_DUP3, came(from), number(to), number(0))
	}
	p.files(o)
	s.confine(p, o)

	p.stage = stageFork
	child := p.variable()
	fork := p.branchFrom(unix.SYS_CLONE, number(unix.SIGCHLD)).into(child)
	// The first process: nobody in the box may look into it or see it.
	p.stage = stageHide
	p.call(unix.SYS_PRCTL, number(unix.PR_SET_DUMPABLE), number(0), number(0), number(0), number(0))
	p.stage = stageDescs
	p.call(unix.SYS_CLOSE_RANGE, number(0), number(2), number(0))
	p.call(unix.SYS_CLOSE, number(programFD))
	p.say('S')
	p.call(reap, child.value())
	fork.to = s.script(p, o)
	s.alter(p)
	return p
}

// confine gives up every right that is left, for the first process and for the script.
func (s *setup) confine(p *program, o order) {
	p.stage = stageWorkDir
	p.call(unix.SYS_CHDIR, p.text(skillDir))
	// The path of the working directory is whole: it lies below our root.
	cwd := p.record(make([]byte, 64))
	p.call(unix.SYS_GETCWD, cwd, number(64)).must(len(skillDir) + 1)
	p.call(unix.SYS_UMASK, number(0o077))
	p.stage = stageProgram
	program := p.variable()
	p.call(unix.SYS_OPENAT, atCwd, p.text(o.interpreter), number(unix.O_PATH|unix.O_CLOEXEC), number(0)).into(program)
	p.stage = stageLimits
	for _, r := range o.rlimits {
		p.limit(r)
	}
	p.stage = stageCaps
	p.call(unix.SYS_CAPSET, p.bytes(words(unix.LINUX_CAPABILITY_VERSION_3)), p.bytes(make([]byte, 24)))
	p.restrict()
	p.stage = stageDescs
	p.call(unix.SYS_DUP3, program.value(), number(programFD), number(unix.O_CLOEXEC))
	p.call(unix.SYS_FCNTL, number(statusFD), number(unix.F_SETFD), number(unix.FD_CLOEXEC))
	p.call(unix.SYS_CLOSE_RANGE, number(programFD+1), number(^uint32(0)), number(0))
	p.stage = stageSeccomp
	rules, asks := s.filterOf(o.frame)
	filter := words(uint64(len(rules)/8), p.bytes(rules).n)
	if !asks {
		p.call(unix.SYS_SECCOMP, number(unix.SECCOMP_SET_MODE_FILTER), number(0), p.bytes(filter))
		return
	}
	flags := unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	listener := p.sendFile('L')
	p.call(unix.SYS_SECCOMP, number(unix.SECCOMP_SET_MODE_FILTER), number(flags), p.bytes(filter)).into(listener)
	p.stage = stageMessage
	p.call(unix.SYS_SENDMSG, number(statusFD), p.sending, number(0)).must(16)
	p.call(unix.SYS_CLOSE, listener.value())
}

// sendFile prepares a message that hands the host a file, and returns where its
// descriptor is to be stored.
func (p *program) sendFile(tag byte) variable {
	text := make([]byte, 16)
	text[0] = tag
	part := p.record(words(p.bytes(text).n, uint64(len(text))))
	control := p.record(words(unix.SizeofCmsghdr+4, unix.SOL_SOCKET|unix.SCM_RIGHTS<<32, 0))
	p.sending = p.record(words(0, 0, part.n, 1, control.n, unix.SizeofCmsghdr+8, 0))
	return variable(control.n + unix.SizeofCmsghdr)
}

func words(list ...uint64) []byte {
	var b []byte
	for _, n := range list {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func (p *program) limit(r rlimit) {
	p.call(unix.SYS_PRLIMIT64, number(0), number(r.what), p.bytes(words(r.limit, r.limit)), number(0))
}

// script adds what the child does that becomes the script, and returns its first step.
func (s *setup) script(p *program, o order) *step {
	p.stage = stageExec
	begin := p.call(unix.SYS_SETSID)
	p.say('R')
	p.stage = stageWait
	p.call(unix.SYS_READ, number(statusFD), p.record(make([]byte, 8)), number(1)).must(1)
	// The process that made the namespaces is gone by now, and no longer counts.
	p.stage = stageLimits
	for _, r := range o.rlimits {
		if r.what == unix.RLIMIT_NPROC {
			p.limit(rlimit{r.what, r.limit - 1})
		}
	}
	p.stage = stageExec
	if o.attempts != nil {
		p.try(o.attempts)
		return begin
	}
	p.call(unix.SYS_EXECVEAT, number(programFD), p.text(""), p.vector(o.argv), p.vector(o.env), number(unix.AT_EMPTY_PATH))
	return begin
}
