//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// A process is the script's first, from before it is known which script that is: it is
// the agent itself first, behind no wall yet, and then an interpreter.
type process struct {
	pid    int
	output [2]*os.File       // its standard output and error
	orders *os.File          // what it is to become
	told   *os.File          // why it could not
	words  *os.File          // for an interpreter that waits
	said   *os.File          // by it
	waits  bool              // it is an interpreter that waits
	start  frame.Interpreter // what it is then
}

const (
	// starters is how many threads the agent needs to become the script.
	starters = 32
	// inputDir is apart, since what the root adds to the runtime is small.
	inputDir  = "/input"
	inputFile = inputDir + "/stdin"
)

// newGroup makes the script's cgroup.
func newGroup() (*os.File, error) {
	if err := os.WriteFile(cgroupDir+"/cgroup.subtree_control", []byte("+memory +pids"), 0); err != nil {
		return nil, err
	}
	if err := os.Mkdir(runGroup, 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(runGroup, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// openInput opens what will be standard input, where there is any.
func openInput() (*os.File, error) {
	f, err := os.Open(inputFile)
	if !os.IsNotExist(err) {
		return f, err
	}
	if err := mount("input", inputDir, "tmpfs", closed|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(inputFile, nil, 0o444); err != nil {
		return nil, err
	}
	return os.Open(inputFile)
}

// spawn starts the process, in a cgroup of its own.
func spawn() (p *process, err error) {
	group, err := newGroup()
	if err != nil {
		return nil, err
	}
	defer group.Close()
	p = &process{}
	var fds []uintptr
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	give := func(f *os.File, ferr error) {
		if err = errors.Join(err, ferr); ferr == nil {
			theirs, fds = append(theirs, f), append(fds, f.Fd())
		}
	}
	pipe := func() (r, w *os.File) {
		r, w, perr := os.Pipe()
		err = errors.Join(err, perr)
		return r, w
	}
	give(os.Open(os.DevNull))
	for i := range p.output {
		r, w := pipe()
		if err == nil {
			err = w.Chown(frame.InsideID, frame.InsideID) // a script may open /dev/stdout
		}
		p.output[i] = r
		give(w, nil)
	}
	for _, way := range []struct {
		ours **os.File
		in   bool
	}{{&p.orders, true}, {&p.told, false}, {&p.words, true}, {&p.said, false}} {
		r, w := pipe()
		if !way.in {
			r, w = w, r
		}
		*way.ours = w
		give(r, nil)
	}
	give(openInput())
	if err != nil {
		return nil, err
	}
	p.pid, err = syscall.ForkExec("/init", []string{confineName}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: fds, Sys: &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(group.Fd())},
	})
	return p, err
}

// become has the process become an interpreter with these arguments behind its options,
// and returns when that has begun.
func (p *process) become(s frame.Interpreter, waits bool, more ...string) error {
	for _, f := range [][2]string{
		{"memory.max", strconv.FormatInt(s.Memory+programs, 10)}, {"memory.oom.group", "1"}, {"pids.max", strconv.Itoa(s.Processes + starters)},
	} {
		if err := os.WriteFile(runGroup+"/"+f[0], []byte(f[1]), 0); err != nil {
			return at(frame.Wall, err)
		}
	}
	text, err := json.Marshal(confined{s, more, waits})
	if err != nil {
		return at(frame.Start, err)
	}
	go func() { // it may be more than a pipe holds
		_, _ = p.orders.Write(text)
		p.orders.Close()
	}()
	said, err := io.ReadAll(p.told)
	if f, perr := frame.ParseFailure(said); perr == nil {
		return at(f.Step, syscall.Errno(f.Errno))
	}
	if err != nil || len(said) > 0 {
		return at(frame.Start, errors.Join(err, errors.New("it said what it cannot say")))
	}
	return at(frame.Wall, os.WriteFile(runGroup+"/pids.max", []byte(strconv.Itoa(s.Processes)), 0))
}

// ready has the process become the interpreter, and returns when that waits for its
// script; false: it does not, and has ended or must be.
func (p *process) ready(r frame.Ready) bool {
	k, known := kinds[r.Kind]
	if !known || p.become(r.Interpreter, k.waits, k.more...) != nil {
		return false
	}
	most := time.Duration(r.Most)
	if !k.waits {
		end := time.AfterFunc(most, func() { _ = os.WriteFile(runGroup+"/cgroup.kill", []byte("1"), 0) })
		defer end.Stop()
		await(p.pid)
		return false
	}
	_ = p.said.SetReadDeadline(time.Now().Add(most))
	p.start, p.waits = r.Interpreter, p.hears('w')
	return p.waits
}

// hears returns whether the interpreter says that next.
func (p *process) hears(what byte) bool {
	var b [1]byte
	n, _ := p.said.Read(b[:])
	return n == 1 && b[0] == what
}

// hand tells the interpreter, which waits, the folder and the script with its words, and
// returns whether it took that.
func (p *process) hand(dir string, script []string) bool {
	_ = p.said.SetReadDeadline(time.Time{})
	go func() {
		_, _ = io.WriteString(p.words, dir+"\x00"+strings.Join(script, "\x00"))
		p.words.Close()
	}()
	return p.hears('g')
}

// prepare has the interpreter in memory, and waiting where that is asked for. What fails
// of that costs a run time and nothing else.
func (a *agent) prepare(r frame.Ready) error {
	if err := a.makeRoot(); err != nil {
		return at(frame.Lay, err)
	}
	err := a.fit(func(p *process) bool { return !p.waits })
	if err == nil {
		err = a.fit(func(p *process) bool { return p.ready(r) && r.Wait })
	}
	return at(frame.Wall, err)
}

// drop ends the process, where there is one.
func (a *agent) drop() error {
	p := a.process
	if p == nil {
		return nil
	}
	a.process = nil
	if _, err := stop(); err != nil {
		return err
	}
	for _, f := range []*os.File{p.output[0], p.output[1], p.orders, p.told, p.words, p.said} {
		f.Close()
	}
	return os.Remove(runGroup)
}

// begin has the process become the script: by a word, where it waits and is the
// interpreter that the script needs.
func (a *agent) begin(o *order) (*process, error) {
	err := a.fit(func(p *process) bool { return !p.waits || o.Plain && reflect.DeepEqual(p.start, o.Interpreter) })
	if err == nil && len(o.stdin) > 0 {
		err = os.WriteFile(inputFile, o.stdin, 0)
	}
	if err == nil {
		err = a.fit(func(p *process) bool { return !p.waits || p.hand(frame.SkillDir, o.Script) })
	}
	if err != nil {
		return nil, at(frame.Wall, err)
	}
	p := a.process
	if p.waits {
		return p, nil
	}
	return p, p.become(o.Interpreter, false, o.Script...)
}

// fit sees to it that there is a process, and drops the one that is not fit.
func (a *agent) fit(fits func(*process) bool) (err error) {
	if a.process != nil {
		if fits(a.process) {
			return nil
		}
		err = a.drop()
	}
	if err == nil {
		a.process, err = spawn()
	}
	return err
}
