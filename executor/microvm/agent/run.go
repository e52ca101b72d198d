//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// starters is how many threads the agent needs to become the script.
const starters = 32

// run runs the script, and returns when no process of it is left and all that it wrote
// was sent.
func (a *agent) run(o *order) (frame.End, error) {
	group, err := o.limit()
	if err != nil {
		return frame.End{}, at(frame.Wall, err)
	}
	defer group.Close()
	stdin, err := o.input()
	if err != nil {
		return frame.End{}, at(frame.Wall, err)
	}
	var read, write [2]*os.File
	for i := range read {
		if read[i], write[i], err = os.Pipe(); err == nil {
			err = write[i].Chown(frame.InsideID, frame.InsideID) // a script may open /dev/stdout
		}
		if err != nil {
			return frame.End{}, at(frame.Wall, err)
		}
	}
	pid, err := o.start(group, []*os.File{stdin, write[0], write[1]})
	if err != nil {
		return frame.End{}, err
	}
	for _, f := range []*os.File{stdin, write[0], write[1]} {
		f.Close()
	}
	if err := os.WriteFile(runGroup+"/pids.max", []byte(strconv.Itoa(o.Processes)), 0); err != nil {
		return frame.End{}, err
	}
	if err := a.say(frame.Started, nil); err != nil {
		return frame.End{}, err
	}
	var readers sync.WaitGroup
	for i, t := range []frame.Type{frame.Stdout, frame.Stderr} {
		readers.Go(func() { a.pass(t, read[i], o.Flood) })
	}
	end := await(pid)
	left, err := stop()
	if err != nil {
		return frame.End{}, err
	}
	readers.Wait()
	end.Left = uint32(left)
	end.OutOfMemory = counted("memory.events", "oom_kill") > 0
	return end, nil
}

// pass sends what comes, and throws away what comes behind so many bytes: the host has
// seen a flood by then.
func (a *agent) pass(t frame.Type, f *os.File, most int64) {
	defer f.Close()
	buf := make([]byte, frame.MaxChunk)
	for {
		n, err := f.Read(buf)
		if n > 0 && most > 0 {
			most -= int64(n)
			if a.say(t, buf[:n]) != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// limit makes the cgroup of the script.
func (o *order) limit() (*os.File, error) {
	if err := os.WriteFile(cgroupDir+"/cgroup.subtree_control", []byte("+memory +pids"), 0); err != nil {
		return nil, err
	}
	if err := os.Mkdir(runGroup, 0o755); err != nil {
		return nil, err
	}
	for _, f := range [][2]string{
		{"memory.max", strconv.FormatInt(o.Memory, 10)}, {"memory.oom.group", "1"}, {"pids.max", strconv.Itoa(o.Processes + starters)},
	} {
		if err := os.WriteFile(runGroup+"/"+f[0], []byte(f[1]), 0); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(runGroup, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// input returns the script's standard input, which has no writer.
func (o *order) input() (*os.File, error) {
	if len(o.stdin) == 0 {
		return os.Open(os.DevNull)
	}
	const dir = "/input" // apart, since what the root adds to the runtime is small
	if err := mount("input", dir, "tmpfs", closed|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(dir+"/stdin", o.stdin, 0o444); err != nil {
		return nil, err
	}
	return os.Open(dir + "/stdin")
}

// A confined is what the agent tells itself of the script.
type confined struct {
	Argv, Env []string
	Filter    []byte
	Rlimits   []frame.Rlimit
}

// start starts the script, and returns when the interpreter has begun.
func (o *order) start(group *os.File, streams []*os.File) (int, error) {
	text, err := json.Marshal(confined{o.Argv, o.Env, o.Filter, o.Rlimits})
	if err != nil {
		return 0, at(frame.Start, err)
	}
	orders, ordersIn, err := os.Pipe()
	if err != nil {
		return 0, at(frame.Start, err)
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return 0, at(frame.Start, err)
	}
	var fds []uintptr
	for _, f := range append(streams, orders, tell) {
		fds = append(fds, f.Fd())
	}
	pid, err := syscall.ForkExec("/init", []string{confineName}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: fds, Sys: &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(group.Fd())},
	})
	if err != nil {
		return 0, at(frame.Start, err)
	}
	orders.Close()
	tell.Close()
	go func() { // it may be more than a pipe holds
		_, _ = ordersIn.Write(text)
		ordersIn.Close()
	}()
	said, err := io.ReadAll(told)
	if f, perr := frame.ParseFailure(said); perr == nil {
		return 0, at(f.Step, syscall.Errno(f.Errno))
	}
	if err != nil || len(said) > 0 {
		return 0, at(frame.Start, errors.Join(err, errors.New("it said what it cannot say")))
	}
	return pid, nil
}

// await reaps all that ends until the script has, and says how that did.
func await(pid int) frame.End {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR || err == nil && got != pid:
		case err != nil:
			panic(err) // nobody else reaps
		case status.Signaled():
			return frame.End{Signal: byte(status.Signal())}
		default:
			return frame.End{Code: byte(status.ExitStatus())}
		}
	}
}

// stop stops what is left of the script, and returns how much that was.
func stop() (left int, err error) {
	text, err := os.ReadFile(runGroup + "/cgroup.procs")
	if err != nil {
		return 0, err
	}
	left = len(strings.Fields(string(text)))
	if err := os.WriteFile(runGroup+"/cgroup.kill", []byte("1"), 0); err != nil {
		return left, err
	}
	for counted("cgroup.events", "populated") != 0 {
		time.Sleep(time.Millisecond)
	}
	for { // what has ended is there until it was reaped
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return left, nil
		}
	}
}

// counted reads one number of a file of the script's cgroup.
func counted(file, name string) int {
	text, _ := os.ReadFile(runGroup + "/" + file)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}
