//go:build linux

package main

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
)

// run runs the script, and returns when no process of it is left and all that it wrote
// was sent.
func (a *agent) run(o *order) (frame.End, error) {
	p, err := a.begin(o)
	if err != nil {
		return frame.End{}, err
	}
	hungry, err := watch(o.Memory)
	if err != nil {
		return frame.End{}, at(frame.Wall, err)
	}
	if err := a.say(frame.Started, nil); err != nil {
		return frame.End{}, err
	}
	go hungry.follow()
	var readers sync.WaitGroup
	for i, t := range []frame.Type{frame.Stdout, frame.Stderr} {
		readers.Go(func() { a.pass(t, p.output[i], o.Flood) })
	}
	end := await(p.pid)
	left, err := stop()
	if err != nil {
		return frame.End{}, err
	}
	readers.Wait()
	end.Left = uint32(left)
	end.OutOfMemory = hungry.killed.Load() || numbers("memory.events")["oom_kill"] > 0
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
	for numbers("cgroup.events")["populated"] != 0 {
		time.Sleep(time.Millisecond)
	}
	for { // what has ended is there until it was reaped
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return left, nil
		}
	}
}
