//go:build linux && (amd64 || arm64)

package engine

import (
	"encoding/binary"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// Sizes of messages that lay files out.
const (
	fullMessage = 1 << 20
	fullRecords = 8192
)

// layout sends messages by which the first process makes files, until one fails.
type layout struct {
	t   *talk
	m   message
	err error
}

// flush sends what there is.
func (l *layout) flush() {
	if l.err == nil && len(l.m.records) > 0 {
		l.err = l.t.say(&l.m)
	}
	l.m = message{}
}

func (l *layout) full() bool { return len(l.m.data) >= fullMessage || len(l.m.records) >= fullRecords }

// files makes the files below the folder, all for the script's user alone.
func (l *layout) files(dir string, b bundle.Bundle) {
	made := map[string]bool{".": true}
	for _, p := range b.Paths() {
		var missing []string
		for d := path.Dir(p); !made[d]; d = path.Dir(d) {
			made[d] = true
			missing = append(missing, d)
		}
		for i := len(missing) - 1; i >= 0; i-- {
			l.m.must(unix.SYS_MKDIRAT, 0, num(-1), l.m.text(dir+"/"+missing[i]), num(0o700))
		}
		l.m.must(unix.SYS_OPENAT, slotA, num(-1), l.m.text(dir+"/"+p), num(unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC), num(0o700))
		text, _, _ := b.Text(p)
		l.write(slotA, text)
		l.m.must(unix.SYS_CLOSE, 0, of(slotA))
		if l.full() {
			l.flush()
		}
	}
}

// write writes the text into an open file that is at its beginning, and holds that all
// of it is there.
func (l *layout) write(fd slot, text string) {
	size := len(text)
	for text != "" && l.err == nil {
		n := min(len(text), fullMessage)
		l.m.must(unix.SYS_WRITE, 0, of(fd), l.m.bytes([]byte(text[:n])), num(n))
		if text = text[n:]; text != "" {
			l.flush()
		}
	}
	l.m.must(unix.SYS_LSEEK, 0, of(fd), num(-size), num(unix.SEEK_CUR)) // a short write has not got so far
}

// lay lays the files of a run out, and returns when they are, by the clock of their
// file system.
func (t *talk) lay(skill, inputs bundle.Bundle, stdin []byte) (laid time.Time, err error) {
	l := layout{t: t}
	l.m.must(unix.SYS_UMASK, 0, num(0o077))
	l.m.must(unix.SYS_MKDIRAT, 0, num(-1), l.m.text(homeDir), num(0o700))
	for _, dir := range []string{inputsDir, outputsDir} {
		l.m.must(unix.SYS_MKDIRAT, 0, num(-1), l.m.text(filesDir+dir), num(0o700))
		if !has(skill, dir[1:]) {
			l.m.must(unix.SYS_SYMLINKAT, 0, l.m.text(filesDir+dir), num(-1), l.m.text(skillDir+dir))
		}
	}
	l.files(skillDir, skill)
	l.files(filesDir+inputsDir, inputs)
	if len(stdin) == 0 {
		l.m.must(unix.SYS_OPENAT, slotStdin, num(-1), l.m.text("/dev/null"), num(unix.O_RDONLY|unix.O_CLOEXEC), num(0))
	} else {
		l.m.must(unix.SYS_MEMFD_CREATE, slotStdin, l.m.text("stdin"), num(unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))
		l.write(slotStdin, string(stdin))
		l.m.must(unix.SYS_FCNTL, 0, of(slotStdin), num(unix.F_ADD_SEALS), num(unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE))
	}
	l.m.must(unix.SYS_UTIMENSAT, 0, num(-1), l.m.text(skillDir+"/."), num(0), num(0)) // its time is now
	l.m.must(fstatat, 0, num(-1), l.m.text(skillDir), inScratch(0), num(unix.AT_SYMLINK_NOFOLLOW))
	t.answer(&l.m, [2]arg{inScratch(0), num(statSize)})
	l.flush()
	if l.err != nil {
		// The first process says why it has left; its word is on its way.
		_, heard := t.hear(0)
		return time.Time{}, errors.Join(heard, l.err)
	}
	b, err := t.hear(statSize)
	if err != nil {
		return time.Time{}, err
	}
	st := stat(b)
	return time.Unix(st.Mtim.Unix()), nil
}

func has(b bundle.Bundle, name string) bool {
	for _, p := range b.Paths() {
		if p == name || strings.HasPrefix(p, name+"/") {
			return true
		}
	}
	return false
}

// A launch is what a script is started with.
type launch struct {
	argv, env []string
	filter    []byte // of system calls
	seconds   int64  // after which the first process stops it by itself
}

// patience is how long after a script's time its first process stops it by itself.
const patience = 15 // seconds

// begin has the first process start the script, and tell how it ended. Sent says that
// the script may have been started, whatever the error.
func (t *talk) begin(l launch) (sent bool, err error) {
	m := message{}
	set := m.bytes(binary.LittleEndian.AppendUint64(nil, 1<<(unix.SIGCHLD-1)|1<<(unix.SIGALRM-1)))
	none := m.bytes(make([]byte, 8))
	m.must(unix.SYS_RT_SIGPROCMASK, 0, num(unix.SIG_BLOCK), set, num(0), num(8))
	m.must(unix.SYS_PIPE2, 0, at(slotPipe), num(unix.O_CLOEXEC))
	read, write := of(slotPipe), of(slotPipe)
	write.value += 4 // the kernel looks at the lower half of a descriptor
	m.try(unix.SYS_WRITE, 0, of(slotAdj), m.bytes([]byte("1000")), num(4))
	alarm := m.bytes(append(make([]byte, 16), binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(l.seconds)), 0)...))
	m.must(unix.SYS_SETITIMER, 0, num(unix.ITIMER_REAL), alarm, num(0))
	m.must(unix.SYS_CHDIR, 0, m.text(skillDir))
	m.must(unix.SYS_PRCTL, 0, num(unix.PR_SET_NO_NEW_PRIVS), num(1), num(0), num(0), num(0))
	list := func(words []string) arg {
		var all []arg
		for _, w := range words {
			all = append(all, m.text(w))
		}
		return m.addresses(nil, all...)
	}
	program, argv, env := m.text(l.argv[0]), list(l.argv), list(l.env)
	filter := m.addresses(binary.LittleEndian.AppendUint64(nil, uint64(len(l.filter)/8)), m.bytes(l.filter))
	m.must(unix.SYS_PRCTL, 0, num(unix.PR_SET_SECCOMP), num(unix.SECCOMP_MODE_FILTER), filter)

	fork := len(m.records)
	m.records = append(m.records, record{kind: recordFork, keep: slotPID})
	m.try(unix.SYS_RT_SIGPROCMASK, 0, num(unix.SIG_SETMASK), none, num(0), num(8))
	m.try(unix.SYS_SETSID, 0)
	child := []int{len(m.records), len(m.records) + 1}
	m.try(unix.SYS_DUP3, slotExec, of(slotStdin), num(0), num(0))
	m.try(unix.SYS_CLOSE_RANGE, slotExec, num(3), num(^uint32(0)), num(unix.CLOSE_RANGE_CLOEXEC))
	m.try(unix.SYS_EXECVE, slotExec, program, argv, env)
	sorry := len(m.records)
	m.try(unix.SYS_WRITE, 0, write, at(slotExec), num(8))
	m.try(unix.SYS_EXIT_GROUP, 0, num(125))
	for _, i := range child {
		m.records[i].orElse = sorry + 1
	}

	m.records[fork].orElse = len(m.records) + 1
	m.try(unix.SYS_WRITE, 0, of(slotAdj), m.bytes([]byte("0")), num(1))
	m.try(unix.SYS_CLOSE, 0, write)
	m.try(unix.SYS_READ, slotB, read, at(slotExec), num(8))
	m.records = append(m.records, record{kind: recordTend, keep: slotEnd, args: []arg{of(slotPID), set}})
	m.try(unix.SYS_SETITIMER, 0, num(unix.ITIMER_REAL), m.bytes(make([]byte, 32)), num(0))
	for _, fd := range []int{1, 2} { // which the script may have set not to wait
		m.must(unix.SYS_FCNTL, 0, num(fd), num(unix.F_SETFL), num(0))
	}
	mark := m.bytes(t.stdout.mark)
	for _, fd := range []int{2, 1} {
		m.must(unix.SYS_WRITE, 0, num(fd), mark, num(markSize))
	}
	t.answer(&m, [2]arg{at(slotPID), num(8)}, [2]arg{at(slotB), num(8)}, [2]arg{at(slotExec), num(8)}, [2]arg{at(slotEnd), num(16)})
	for i := range oomFiles {
		t.readOpen(&m, slotOOM+slot(i))
	}
	b, err := m.encode()
	if err != nil {
		return false, err
	}
	t.stdout.begin()
	t.stderr.begin()
	n, err := t.conn.Write(b)
	return n > 0, err
}

// An end is how a script ended, as the first process tells.
type end struct {
	forked      int64 // the script's process
	failed      int64 // of the call that starts the interpreter; zero: it was started
	status      uint32
	stopped     int  // processes that it left
	late        bool // the first process stopped it
	outOfMemory bool // a process was killed for want of memory
}

// end returns how the script ended. It is called when the marks have been seen.
func (t *talk) end() (e end, err error) {
	b, err := t.hear(40)
	if err != nil {
		return e, err
	}
	e.forked = result(b)
	if result(b[8:]) != 0 {
		e.failed = result(b[16:])
	}
	le := binary.LittleEndian
	e.status, e.stopped, e.late = le.Uint32(b[24:]), int(le.Uint32(b[28:])), le.Uint32(b[32:]) != 0
	for range oomFiles {
		text, err := t.heardText()
		if err != nil && !errors.Is(err, unix.EBADF) { // that is one of the other version of cgroups
			return e, err
		}
		e.outOfMemory = e.outOfMemory || oomKilled(text)
	}
	return e, nil
}
