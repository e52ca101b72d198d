//go:build unix

package box

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// Streams capture the two output streams of a run. They are read from the start
// and drained beyond the limit, so that a script never waits for a reader.
type Streams struct {
	stdout, stderr *executor.Capture
	read, write    [2]*os.File
	readers        sync.WaitGroup
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// NewStreams makes the pipes. Flood is called, perhaps twice, when a stream has
// far more than max bytes; see [executor.FloodFactor].
func NewStreams(max int, live *gate.Live, flood func()) (*Streams, error) {
	tap := func(s gate.Stream) func([]byte) { return func(p []byte) { live.Send(s, p) } }
	s := &Streams{
		stdout: executor.NewCapture(max, tap(gate.Stdout), flood),
		stderr: executor.NewCapture(max, tap(gate.Stderr), flood),
	}
	for i := range s.read {
		var err error
		if s.read[i], s.write[i], err = os.Pipe(); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Writers returns what becomes standard output and standard error of the process.
func (s *Streams) Writers() (stdout, stderr *os.File) { return s.write[0], s.write[1] }

// Start is called when the process has its own copies of the writers.
func (s *Streams) Start() {
	for i, c := range []*executor.Capture{s.stdout, s.stderr} {
		s.write[i].Close()
		s.readers.Go(func() {
			buf := buffers.Get().(*[32 << 10]byte)
			defer buffers.Put(buf)
			for {
				n, err := s.read[i].Read(buf[:])
				_, _ = c.Write(buf[:n])
				if errors.Is(err, os.ErrDeadlineExceeded) {
					drain(s.read[i], buf[:], c)
				}
				if err != nil {
					return
				}
			}
		})
	}
}

// maxPipe is the most bytes that a pipe holds: 1 MiB (pipe(7), pipe-max-size).
const maxPipe = 1 << 20

// drain reads what is in the pipe, without waiting. A reader that the scheduler
// did not let run before the deadline is told of the deadline first, and what the
// script wrote would be lost: seen with 8 runs at once on a busy machine.
func drain(f *os.File, buf []byte, c *executor.Capture) {
	_ = f.SetReadDeadline(time.Time{})
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	for read := 0; read < maxPipe; {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			n, _ = unix.Read(int(fd), buf) // it never waits: os makes pipes so
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		_, _ = c.Write(buf[:n])
		read += n
	}
}

// Finish is called when the processes of the run are gone. It reads what is left
// in the pipes, for no longer than grace, since a process that could not be
// stopped may still hold one open.
func (s *Streams) Finish(grace time.Duration) (stdout, stderr []byte, truncated bool) {
	for _, r := range s.read {
		_ = r.SetReadDeadline(time.Now().Add(grace))
	}
	s.readers.Wait()
	var cutOut, cutErr bool
	stdout, cutOut = s.stdout.Bytes()
	stderr, cutErr = s.stderr.Bytes()
	return stdout, stderr, cutOut || cutErr
}

// Close closes the pipes. It may be called again, and at any time after Finish
// or instead of Start.
func (s *Streams) Close() {
	for i := range s.read {
		if s.read[i] != nil {
			s.read[i].Close()
			s.write[i].Close()
		}
	}
}
