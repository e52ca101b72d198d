//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// An agent serves one order.
type agent struct {
	port    *os.File
	rooted  bool     // the script's root is there
	process *process // the script's, from before it is known; nil: none was started

	mu sync.Mutex // one frame at a time goes out
}

func (a *agent) say(t frame.Type, b []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return frame.Write(a.port, t, b)
}

// serve returns a *failure for what the host is to be told.
func (a *agent) serve() error {
	o, err := a.await()
	if err == nil {
		err = at(frame.Take, a.take(o))
	}
	if err != nil {
		return err
	}
	skill, err := o.closure()
	if err != nil {
		return at(frame.Digest, err)
	}
	ground, err := a.lay(o, skill)
	if err != nil {
		return at(frame.Lay, err)
	}
	end, err := a.run(o)
	if err != nil {
		return err
	}
	if err := a.say(frame.Ended, end.Bytes()); err != nil {
		return err
	}
	return a.show(ground)
}

// An order is what the host told.
type order struct {
	frame.Orders
	seed, stdin, declaration []byte
	skill, inputs            []bundle.File
}

// await greets the host until that gives the order. Here a machine is saved: what was
// restored of it is told so, and has the time and its own chance before it greets again.
func (a *agent) await() (*order, error) {
	for {
		if err := a.say(frame.Hello, []byte(frame.Greeting)); err != nil {
			return nil, err
		}
		t, b, err := frame.Told(a.port)
		if err != nil {
			return nil, at(frame.Take, err)
		}
		switch t {
		case frame.Order:
			o := &order{}
			return o, at(frame.Take, json.Unmarshal(b, &o.Orders))
		case frame.Wake:
			var now int64
			var seed []byte
			if now, seed, err = frame.ParseWake(b); err == nil {
				err = refresh(now, seed)
			}
			err = at(frame.Take, err)
		case frame.Prepare:
			var r frame.Ready
			if err = at(frame.Take, json.Unmarshal(b, &r)); err == nil {
				err = a.prepare(r)
			}
		default:
			err = at(frame.Take, fmt.Errorf("the host began with %q", byte(t)))
		}
		if err != nil {
			return nil, err
		}
	}
}

// take takes the data that the order says.
func (a *agent) take(o *order) (err error) {
	data := &stream{port: a.port}
	next := func(n int) []byte {
		b := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(data, b)
		}
		return b
	}
	o.seed, o.stdin, o.declaration = next(o.Seed), next(o.Stdin), next(o.Declaration)
	for _, f := range o.Skill {
		o.skill = append(o.skill, bundle.File{Path: f.Path, Data: next(f.Size)})
	}
	for _, f := range o.Inputs {
		o.inputs = append(o.inputs, bundle.File{Path: f.Path, Data: next(f.Size)})
	}
	if err == nil {
		err = refresh(o.Time, o.seed)
	}
	return err
}

// A stream is what the host's data frames hold.
type stream struct {
	port *os.File
	left []byte
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		t, b, err := frame.Told(s.port)
		if err != nil {
			return 0, err
		}
		if t != frame.Data {
			return 0, fmt.Errorf("the host said %q before all data had come", byte(t))
		}
		s.left = b
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// reseed is the ioctl RNDRESEEDCRNG.
const reseed = 0x5207

// refresh gives the machine the time, and chance that no other machine has.
func refresh(now int64, seed []byte) error {
	ts := unix.NsecToTimespec(now)
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return err
	}
	f, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const head = 8 // struct rand_pool_info: how many bits, how many bytes, and these
	pool := make([]byte, head+len(seed))
	*(*int32)(unsafe.Pointer(&pool[0])) = int32(8 * len(seed))
	*(*int32)(unsafe.Pointer(&pool[4])) = int32(len(seed))
	copy(pool[head:], seed)
	for _, call := range []struct {
		what uintptr
		arg  unsafe.Pointer
	}{{unix.RNDADDENTROPY, unsafe.Pointer(&pool[0])}, {reseed, nil}} {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), call.what, uintptr(call.arg)); errno != 0 {
			return errno
		}
	}
	return nil
}

// closure holds that what came is what was granted.
func (o *order) closure() (bundle.Bundle, error) {
	const most = 1 << 30 // the host has held the limits
	b, err := bundle.New(o.skill, o.declaration, bundle.Limits{FileBytes: most, TotalBytes: most, Files: most, Depth: most, PathBytes: most})
	if err == nil && b.Digest().String() != o.Digest {
		err = errors.New("another closure came than was granted")
	}
	return b, err
}

// show lists what the script left, and sends of it what the host asks for.
func (a *agent) show(g *ground) error {
	l := list(g)
	var b []byte
	for i, e := range l.entries {
		b = e.Append(b)
		if len(b) > frame.MaxChunk-frame.MaxEntry || i == len(l.entries)-1 {
			if err := a.say(frame.Listing, b); err != nil {
				return err
			}
			b = nil
		}
	}
	if err := a.say(frame.Listed, nil); err != nil {
		return err
	}
	for {
		t, b, err := frame.Told(a.port)
		if err != nil {
			return err
		}
		number, most, err := frame.ParseFetch(b)
		if err != nil || t != frame.Fetch {
			return errors.Join(err, fmt.Errorf("the host said %q where it may ask for files", byte(t)))
		}
		if err := a.send(l.path(number), most); err != nil {
			return err
		}
	}
}

// send sends so much of the file as there is.
func (a *agent) send(path string, most uint64) error {
	if f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err == nil {
		defer f.Close()
		buf := make([]byte, frame.MaxChunk)
		for r := io.LimitReader(f, int64(min(most, 1<<62))); ; {
			n, err := r.Read(buf)
			if n > 0 {
				if err := a.say(frame.Content, buf[:n]); err != nil {
					return err
				}
			}
			if err != nil {
				break
			}
		}
	}
	return a.say(frame.Whole, nil)
}
