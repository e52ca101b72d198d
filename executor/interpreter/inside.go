package interpreter

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
)

// Inside finds what runs scripts of the extension in the runtime of that name: at
// the path or, where path is empty, in the folders of the runtime's PATH. Paths and
// links are resolved in the runtime and never outside. The file is hashed and not
// run: what lies in a runtime runs in boxes alone.
//
// # Errors
//
// A *NotAvailableError, which wraps ErrNotAvailable.
func Inside(extension, runtime string, in *image.Image, name string) (Found, error) {
	fail := &NotAvailableError{Extension: extension, Remedy: "name the path of what runs it in the runtime: " + extension + "=runtime:" + runtime + ":/usr/bin/…"}
	paths := []string{name}
	if name == "" {
		paths = nil
		for _, n := range extensions[extension].names {
			for dir := range strings.SplitSeq(cmp.Or(in.Environment()["PATH"], SearchPath), ":") {
				paths = append(paths, path.Join(dir, n))
			}
		}
	}
	for _, p := range paths {
		digest, err := hashInside(in, p)
		if err == nil {
			return Found{Extension: extension, Kind: KindOf(extension, p), Path: p, Digest: digest, Runtime: runtime, Image: in.Digest()}, nil
		}
		if name != "" || !errors.Is(err, fs.ErrNotExist) {
			fail.Tried = append(fail.Tried, Attempt{runtime + ":" + p, err})
		}
	}
	if len(fail.Tried) == 0 {
		fail.Tried = []Attempt{{runtime, errors.New("none is in its folders of programs")}}
	}
	return Found{}, fail
}

func hashInside(in *image.Image, name string) (d bundle.Digest, err error) {
	if !path.IsAbs(name) || path.Clean(name) != name {
		return d, errors.New("it is not an absolute path in its shortest form")
	}
	f, err := in.Open(name)
	if err != nil {
		return d, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return d, err
	}
	if info.Mode()&0o111 == 0 {
		return d, errors.New("it cannot be executed")
	}
	if script, err := isScriptFile(f); err != nil || script {
		return d, errors.Join(err, errors.New("it is a script around an interpreter, which cannot be seen through"))
	}
	return hash(f)
}

// OpenInside opens an interpreter in a runtime for reading, as Open does one of
// the host.
//
// # Errors
//
// As for Open.
func (o *Opener) OpenInside(image *image.Image, in gate.Interpreter) (*os.File, error) {
	switch {
	case in.Path == "" || in.Digest.IsZero():
		return nil, fmt.Errorf("%w: the allow-list has no path or no digest of the interpreter in the runtime %q; probe it", executor.ErrUnavailable, in.Name)
	case in.Image != image.Digest():
		return nil, fmt.Errorf("%w: the runtime %q is %s, and the allow-list has %s", ErrChanged, in.Name, image.Digest(), in.Image)
	}
	f, err := image.Open(in.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: in the runtime %q: %w", executor.ErrUnavailable, ErrNotAvailable, in.Name, err)
	}
	return o.same(in.Image.String()+in.Path, f, in.Digest)
}
