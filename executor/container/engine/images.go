//go:build linux && (amd64 || arm64)

package engine

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
)

// Runtimes are those of the image store that are in the engine, or will be. It is safe for
// concurrent use.
type runtimes struct {
	api   *api
	store *image.Store
	ids   [2]int // the first identity of scripts, and how many there are
	told  func(err error)

	mu    sync.Mutex
	known map[bundle.Digest]*held
	work  sync.WaitGroup
	stop  context.Context
}

// A held runtime is one that is open in the store as long as the executor is open.
type held struct {
	image    *image.Image
	id       string // the engine's; empty: it is not there
	bringing bool
}

// repository begins the names of our images. There is no such host, from which an
// engine could fetch one.
const repository = "localhost/tracon/"

// name returns under which name a runtime is in the engine: its digest, and that of
// what we add to it. No runtime: what we add alone. It has no tag, as Podman 4.3 drops
// the one that an archive is to get.
func (r *runtimes) name(d bundle.Digest) string {
	ours := bundle.Sum(fmt.Appendf([]byte("tracon/engine/1 "), "%d %d %x", r.ids[0], r.ids[1], initProgram))
	what := "probe"
	if !d.IsZero() {
		what = hex.EncodeToString(d[:])
	}
	return repository + what + "-" + hex.EncodeToString(ours[:16])
}

// get returns a runtime, which may not be in the engine.
func (r *runtimes) get(d bundle.Digest) (*held, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.known[d]; known != nil {
		return known, nil
	}
	if r.store == nil {
		return nil, errors.New("this executor was given no runtimes")
	}
	i, err := r.store.Image(d)
	if err != nil {
		return nil, err
	}
	made := &held{image: i}
	r.known[d] = made
	return made, nil
}

// id returns the engine's name of a runtime's image, and false where it is not there.
// It is brought there meanwhile.
func (r *runtimes) id(d bundle.Digest, known *held) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known.id != "" {
		return known.id, true
	}
	if !known.bringing && r.stop.Err() == nil {
		known.bringing = true
		r.work.Go(func() {
			id, err := r.bring(r.stop, d, known.image)
			r.mu.Lock()
			known.id, known.bringing = id, false
			r.mu.Unlock()
			if err != nil {
				r.told(err)
			}
		})
	}
	return "", false
}

// missing is called when the engine has no such image any more.
func (r *runtimes) missing(known *held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known.id = ""
}

// ready brings a runtime into the engine, unless it is there, and waits for it.
func (r *runtimes) ready(ctx context.Context, d bundle.Digest) error {
	known, err := r.get(d)
	if err != nil {
		return err
	}
	id, err := r.bring(ctx, d, known.image)
	r.mu.Lock()
	defer r.mu.Unlock()
	known.id = id
	return err
}

// bring returns the engine's name of an image, which it makes where it is not there. No
// image: that of a probe.
func (r *runtimes) bring(ctx context.Context, d bundle.Digest, i *image.Image) (string, error) {
	name := r.name(d)
	id, there, err := r.api.imageID(ctx, name)
	if err != nil || there {
		return id, err
	}
	if err := r.api.bring(ctx, name, func(w *tar.Writer) error { return r.write(ctx, w, i) }); err != nil {
		return "", err
	}
	if id, there, err = r.api.imageID(ctx, name); err == nil && !there {
		err = failed("making an image", errors.New("it is not there afterwards"))
	}
	return id, err
}

// What a runtime has at its top and in /etc that is a container's own, or nobody's.
var taken = []string{
	"dev", "proc", "sys", "run", initPath[1:], skillDir[1:], filesDir[1:], inputsDir[1:], outputsDir[1:], tmpDir[1:], "var/tmp",
	"etc/passwd", "etc/passwd-", "etc/group", "etc/group-", "etc/shadow", "etc/shadow-", "etc/gshadow", "etc/gshadow-",
	"etc/hosts", "etc/hostname", "etc/nsswitch.conf", "etc/resolv.conf", "etc/mtab",
}

// write writes the root of a container: the runtime, and what is ours.
func (r *runtimes) write(ctx context.Context, w *tar.Writer, i *image.Image) error {
	made := map[string]bool{}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o711}); err != nil { // whose names a script cannot list
		return err
	}
	if i != nil {
		err := i.WriteTar(ctx, w, func(p string) bool {
			if slices.ContainsFunc(taken, func(t string) bool { return p == t || strings.HasPrefix(p, t+"/") }) {
				return false
			}
			made[p] = true
			return true
		})
		if err != nil {
			return err
		}
	}
	for _, dir := range append([]string{"/dev", "/dev/shm", "/proc", "/sys", "/run", "/etc", "/var", "/var/tmp"}, folders...) {
		if !made[dir[1:]] {
			mode := int64(0o711)
			if slices.Contains(folders, dir) { // some OCI runtimes give a file system the mode of what it lies over
				mode = 0o777
			}
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: mode}); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{inputsDir, outputsDir} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name[1:], Linkname: filesDir + name, Mode: 0o777}); err != nil {
			return err
		}
	}
	for _, f := range r.own() {
		mode := int64(0o444)
		if path.Base(f[0]) == initPath[1:] {
			mode = 0o555
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f[0], Mode: mode, Size: int64(len(f[1]))}); err != nil {
			return err
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			return err
		}
	}
	return nil
}

// own returns the files that are ours. Every user that a script may be has the name
// skill.
func (r *runtimes) own() [][2]string {
	var users, groups strings.Builder
	users.WriteString("root:x:0:0::/:/bin/false\n")
	groups.WriteString("root:x:0:\n")
	for i := range r.ids[1] {
		id := strconv.Itoa(r.ids[0] + i)
		users.WriteString("skill:x:" + id + ":" + id + ":skill:" + homeDir + ":/bin/sh\n")
		groups.WriteString("skill:x:" + id + ":\n")
	}
	return [][2]string{
		{initPath[1:], string(initProgram)}, {"etc/passwd", users.String()}, {"etc/group", groups.String()},
		{"etc/hosts", "127.0.0.1 localhost\n"}, {"etc/hostname", "container\n"}, {"etc/resolv.conf", ""},
		{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	}
}

// close lets go of the runtimes.
func (r *runtimes) close() error {
	r.work.Wait()
	var errs []error
	for _, known := range r.known {
		errs = append(errs, known.image.Close())
	}
	return errors.Join(errs...)
}
