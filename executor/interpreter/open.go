package interpreter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// ErrChanged is wrapped by the error for an interpreter whose file is not the
// one that was probed. It wraps executor.ErrUnavailable.
var ErrChanged = fmt.Errorf("%w: the interpreter is not the file that was probed", executor.ErrUnavailable)

// An Opener opens interpreters to be started, each as the very file whose digest
// stands in the allow-list. It hashes a file at first sight and whenever its
// identity (device, inode, size, times) has changed. The zero Opener is ready
// and is safe for concurrent use.
type Opener struct {
	mu    sync.Mutex
	known map[string]knownFile
}

// settled is how old the last change of a file must be before its identity is
// relied on: file systems count time in ticks of up to 2 s, and a second change
// in the same tick would not show.
const settled = 2 * time.Second

type knownFile struct {
	identity identity
	digest   bundle.Digest
}

// Open opens the file at in.Path for reading. Whoever starts it through this
// descriptor starts what was hashed, whatever becomes of the path meanwhile.
//
// # Errors
//
// One that wraps executor.ErrUnavailable: for a runtime, a path that is not
// absolute or a missing digest; ErrNotAvailable for a file that cannot be
// opened; ErrChanged for one that has another digest.
func (o *Opener) Open(in gate.Interpreter) (*os.File, error) {
	switch {
	case in.Name != "" && in.Path != "":
		return nil, fmt.Errorf("%w: %s lies in the runtime %q, and this executor starts interpreters of its own host; take the sandbox", executor.ErrUnavailable, in.Path, in.Name)
	case in.Path == "":
		return nil, fmt.Errorf("%w: %q is a runtime's name, and this executor starts interpreters of its own host", executor.ErrUnavailable, in.Name)
	case !filepath.IsAbs(in.Path):
		return nil, fmt.Errorf("%w: interpreter %q is not an absolute path", executor.ErrUnavailable, in.Path)
	case in.Digest.IsZero():
		return nil, fmt.Errorf("%w: the allow-list has no digest for %s; probe it", executor.ErrUnavailable, in.Path)
	}
	f, err := os.Open(in.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %w", executor.ErrUnavailable, ErrNotAvailable, err)
	}
	return o.same(in.Path, f, in.Digest)
}

// same returns f where it has the digest, and closes it where it has another.
func (o *Opener) same(path string, f *os.File, want bundle.Digest) (*os.File, error) {
	digest, err := o.digest(path, f)
	if err == nil && digest != want {
		err = fmt.Errorf("%w: %s has digest %s, and the allow-list has %s; probe it again", ErrChanged, path, digest, want)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (o *Opener) digest(path string, f *os.File) (bundle.Digest, error) {
	id, err := identify(f)
	if err != nil {
		return bundle.Digest{}, fmt.Errorf("%w: %s: %w", executor.ErrUnavailable, path, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock() // also while hashing: many runs at once hash a new file once
	if k, ok := o.known[path]; ok && k.identity == id {
		return k.digest, nil
	}
	id, d, err := steady(f, hash)
	if err != nil {
		return bundle.Digest{}, fmt.Errorf("%w: %s: %w", executor.ErrUnavailable, path, err)
	}
	if id == (identity{}) {
		return bundle.Digest{}, fmt.Errorf("%w: %s changed while it was read", ErrChanged, path)
	}
	if o.known == nil {
		o.known = map[string]knownFile{}
	}
	delete(o.known, path)
	if id.age() > settled {
		o.known[path] = knownFile{id, d}
	}
	return d, nil
}

// readings is how often a file is read whose identity changes meanwhile. A backup that
// gives it a second name changes the time of its change, and not a byte.
const readings = 5

// steady returns what read makes of the file, and the identity that the file had before
// and after it: the zero one where it had another each time.
func steady(f *os.File, read func(*os.File) (bundle.Digest, error)) (id identity, d bundle.Digest, err error) {
	for range readings {
		before, err := identify(f)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			d, err = read(f)
		}
		if err != nil {
			return identity{}, bundle.Digest{}, err
		}
		if after, err := identify(f); err == nil && after == before {
			return before, d, nil
		}
	}
	return identity{}, bundle.Digest{}, nil
}
