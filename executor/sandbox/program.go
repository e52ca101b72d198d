//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tracon-go/tracon/executor/internal/box"
)

// Where things lie in the memory of the box's first process. It maps the program
// that makes the box at frameBase, and that of the call at callBase. All addresses
// are known when a program is written, so that nothing is relocated in the child.
const (
	frameBase = 0x2000_0000
	callBase  = 0x4000_0000
	pageSize  = 4096     // of what a step may change: no other page is copied
	stepsAt   = 16 << 20 // data lie before the steps
	blobsAt   = 32 << 20 // what is large lies behind them
	stepSize  = 80
)

// What the first program leaves to the second, in its page of what steps may change.
const (
	messageAt = frameBase + 16 // of the host: its first 32 bits are the second program's size
	rightsAt  = frameBase + 32 // a header of 16 bytes and the descriptors that came with it
	rulesAt   = frameBase + 64 // the rules of Landlock
	freeAt    = 72
)

// reap stands for a system call that is none: see init/amd64.s.
const reap = ^uintptr(0)

// The flags of a step.
const (
	loads    = 1 << iota // and one more for each argument
	anything = 1 << 8    // the result does not matter
	exactly  = 1 << 9    // the result must be this
	branch   = 1 << 10   // a result of 0 goes on elsewhere
)

// A value is an argument of a system call: a number, an address in the program,
// or what an earlier step stored there.
type value struct {
	n    uint64
	load bool
}

func number[N ~int | ~uint | ~uint32 | ~uint64 | ~uintptr](n N) value { return value{n: uint64(n)} }

// A variable holds the result of a step, 32 bits.
type variable uint64

func (v variable) value() value { return value{n: uint64(v), load: true} }

// A step is one system call of the first process.
type step struct {
	stage stage // what it is for
	nr    uintptr
	flags uint32
	args  [6]value
	store variable
	want  int64
	to    *step // where a branch leads
	far   bool  // it leads to the first step of the second program

	option string // that it sets, of a file system
}

// A stage is a part of setting a box up. It names the step that failed.
type stage string

// A program is what the first process of a box does: a list of system calls and
// the data they need. It runs in a process that shares no memory with this one.
type program struct {
	base    uint64 // where it is mapped
	stage   stage  // of the steps to come
	steps   []*step
	slab    []step // for steps to come
	data    []byte // from pageSize on
	known   map[string]value
	page    [pageSize]byte // what steps may change
	vars    uint64         // how much of it is taken
	opened  variable       // see scratch
	cloned  variable       // see clone
	sending value          // see sendFile
	last    variable       // the result of the attempt before, in a probe
	blobs   []string
	end     uint64 // of the blobs
}

func newProgram(base uint64) *program {
	return &program{base: base, steps: make([]*step, 0, usualSteps), known: make(map[string]value, usualSteps/4), vars: freeAt, end: blobsAt}
}

// usualSteps is how many steps most programs have.
const usualSteps = 512

// call adds a step, whose result must be no error.
func (p *program) call(nr uintptr, args ...value) *step {
	if len(p.slab) == 0 {
		p.slab = make([]step, usualSteps)
	}
	s := &p.slab[0]
	p.slab = p.slab[1:]
	s.stage, s.nr = p.stage, nr
	copy(s.args[:], args)
	p.steps = append(p.steps, s)
	return s
}

// into stores the result. The variable may be used from then on.
func (s *step) into(v variable) *step { s.store = v; return s }

// mayFail passes over an error.
func (s *step) mayFail() *step { s.flags |= anything; return s }

// must demands this very result.
func (s *step) must(n int) *step { s.flags |= exactly; s.want = int64(n); return s }

// variable makes a variable.
func (p *program) variable() variable {
	v := variable(p.base + p.vars)
	p.vars += 8
	return v
}

// scratch returns the variable for a file that is closed a few steps later.
func (p *program) scratch() variable {
	if p.opened == 0 {
		p.opened = p.variable()
	}
	return p.opened
}

// record makes a structure that steps may change, with these bytes at first.
func (p *program) record(b []byte) value {
	v := value{n: p.base + p.vars}
	if p.vars+uint64(len(b)) <= pageSize {
		copy(p.page[p.vars:], b)
	}
	p.vars += uint64(len(b)+7) &^ 7
	return v
}

// bytes adds data that nothing changes, and returns its address. The same data
// is kept once.
func (p *program) bytes(b []byte) value {
	if v, ok := p.known[string(b)]; ok {
		return v
	}
	for len(p.data)%8 != 0 {
		p.data = append(p.data, 0)
	}
	v := value{n: p.base + pageSize + uint64(len(p.data))}
	p.data = append(p.data, b...)
	p.known[string(b)] = v
	return v
}

// text adds a string that ends with NUL.
func (p *program) text(s string) value { return p.bytes(append([]byte(s), 0)) }

// vector adds an array of strings that ends with NULL.
func (p *program) vector(list []string) value {
	var b []byte
	for _, s := range list {
		b = binary.LittleEndian.AppendUint64(b, p.text(s).n)
	}
	return p.bytes(append(b, make([]byte, 8)...))
}

// blob adds data that may be large.
func (p *program) blob(s string) value {
	v := value{n: p.base + p.end}
	p.blobs = append(p.blobs, s)
	p.end += uint64(len(s))
	return v
}

// seal writes the program into a piece of memory that nobody can change any more.
func (p *program) seal() (*os.File, error) {
	if p.vars > pageSize {
		return nil, errors.New("sandbox: a program has too many variables")
	}
	if n := pageSize + len(p.data); n > stepsAt {
		return nil, fmt.Errorf("sandbox: what a run needs is too much: %d bytes of arguments and names", n)
	}
	if n := len(p.steps); n > (blobsAt-stepsAt)/stepSize {
		return nil, fmt.Errorf("sandbox: what a run needs is too much: %d steps for its files and folders", n)
	}
	binary.LittleEndian.PutUint64(p.page[:], p.base+stepsAt)
	at := make(map[*step]uint64, 4)
	for _, s := range p.steps {
		if s.to != nil {
			at[s.to] = 0
		}
	}
	for i, s := range p.steps {
		if _, ok := at[s]; ok {
			at[s] = p.base + stepsAt + uint64(i*stepSize)
		}
	}
	steps := make([]byte, 0, len(p.steps)*stepSize)
	for _, s := range p.steps {
		want := uint64(s.want)
		switch {
		case s.far:
			want = callBase + stepsAt
		case s.to != nil:
			want = at[s.to]
		}
		steps = s.append(steps, want)
	}
	return box.Sealed("program", 0, func(f *os.File) error {
		_, err := f.Write(append(p.page[:], p.data...))
		if err == nil {
			_, err = f.WriteAt(steps, stepsAt)
		}
		if err == nil && len(p.blobs) > 0 {
			_, err = f.Seek(blobsAt, io.SeekStart)
		}
		for _, b := range p.blobs {
			if err == nil {
				_, err = f.WriteString(b)
			}
		}
		return err
	})
}

func (s *step) append(b []byte, want uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(s.nr))
	flags := s.flags
	for i, a := range s.args {
		if a.load {
			flags |= loads << i
		}
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	for _, a := range s.args {
		b = binary.LittleEndian.AppendUint64(b, a.n)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(s.store))
	b = binary.LittleEndian.AppendUint64(b, want)
	return append(b, make([]byte, stepSize-72)...)
}

// at returns the step whose address has these low 32 bits, nil for none of this
// program.
func (p *program) at(address uint32) *step {
	if p == nil || uint64(address) < p.base+stepsAt {
		return nil
	}
	if i := (uint64(address) - p.base - stepsAt) / stepSize; i < uint64(len(p.steps)) {
		return p.steps[i]
	}
	return nil
}
