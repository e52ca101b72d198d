// Package kit is what a micro-VM boots from: a kernel, a first file system with the
// agent, and for each runtime a disk. Start with [Prepare], which makes them in a
// folder, and [AddDisk]; [Open] opens what is there.
//
// Each file has its SHA-256 in its name, is written under another name first, and is
// never changed. The list of them is kit.json, which [Open] reads strictly; a file is
// held against its digest before it is used, and used through that very descriptor.
package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// Errors of [Open] and of a Kit. Prepare again, whichever it is.
var (
	// ErrNotPrepared: there is no kit, or none for the runtime.
	ErrNotPrepared = errors.New("kit: it is not prepared; run: tracon microvm prepare")
	// ErrChanged: a file is not the one that was prepared, or the agent is not this program's.
	ErrChanged = errors.New("kit: it is not what was prepared; run: tracon microvm prepare")
)

// version is that of the list.
const version = 1

// A list is kit.json.
type list struct {
	Version int                      `json:"version"`
	Kernel  bundle.Digest            `json:"kernel"`
	Initrd  bundle.Digest            `json:"initrd"`
	Agent   bundle.Digest            `json:"agent"`
	Disks   map[string]bundle.Digest `json:"disks"` // by the runtime's digest
}

const (
	listName = "kit.json"
	lockName = "kit.lock"
	maxList  = 1 << 20
)

// An Info says what a kit has.
type Info struct {
	Kernel bundle.Digest   `json:"kernel"`
	Initrd bundle.Digest   `json:"initrd"`
	Agent  bundle.Digest   `json:"agent"`
	Disks  []bundle.Digest `json:"disks"` // the runtimes, in the order of their digests
}

func (l list) info() Info {
	i := Info{Kernel: l.Kernel, Initrd: l.Initrd, Agent: l.Agent, Disks: []bundle.Digest{}}
	for name := range l.Disks {
		if d, err := bundle.ParseDigest(name); err == nil {
			i.Disks = append(i.Disks, d)
		}
	}
	slices.SortFunc(i.Disks, func(a, b bundle.Digest) int { return strings.Compare(a.String(), b.String()) })
	return i
}

func readList(dir string) (list, error) {
	b, err := readFile(filepath.Join(dir, listName), maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return list{}, ErrNotPrepared
	}
	if err != nil {
		return list{}, fmt.Errorf("kit: %w", err)
	}
	return parseList(b)
}

func parseList(b []byte) (l list, err error) {
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err = d.Decode(&l); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something stands behind it")
		}
	}
	if err == nil && (l.Version != version || l.Kernel.IsZero() || l.Initrd.IsZero() || l.Agent.IsZero()) {
		err = fmt.Errorf("version %d is not this program's, or it is not whole", l.Version)
	}
	for name, disk := range l.Disks {
		if _, perr := bundle.ParseDigest(name); err == nil && (perr != nil || disk.IsZero()) {
			err = errors.New("it has a disk of no runtime")
		}
	}
	if err != nil {
		return list{}, fmt.Errorf("%w: %s: %w", ErrChanged, listName, err)
	}
	return l, nil
}

// file returns the name of the file of that digest.
func file(d bundle.Digest) string { return d.Hex() }

// Prepare makes the kernel and the first file system in the folder, which it makes with
// mode 0700 where it is not there. Disks that are there stay.
//
// # Errors
//
// One that wraps ErrKernel for a kernel that will not do; what the operating system says.
func Prepare(ctx context.Context, dir string, from Source) (Info, error) {
	p, err := from.read(ctx)
	if err != nil {
		return Info{}, err
	}
	kernel, err := vmlinux(p.kernel)
	if err != nil {
		return Info{}, err
	}
	agent, err := agentProgram()
	if err != nil {
		return Info{}, err
	}
	return change(ctx, dir, func(l *list) error {
		l.Version, l.Agent = version, bundle.Sum(agent)
		if l.Kernel, err = keep(dir, kernel); err == nil {
			l.Initrd, err = keep(dir, p.initrd(agent))
		}
		return err
	})
}

// change changes the list, and removes the files that it does not name any more.
func change(ctx context.Context, dir string, f func(*list) error) (Info, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Info{}, fmt.Errorf("kit: %w", err)
	}
	lock, err := ownfile.WaitLock(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return Info{}, fmt.Errorf("kit: %w", err)
	}
	defer lock.Close()
	l, err := readList(dir)
	if errors.Is(err, ErrNotPrepared) || errors.Is(err, ErrChanged) {
		l = list{}
	} else if err != nil {
		return Info{}, err
	}
	if l.Disks == nil {
		l.Disks = map[string]bundle.Digest{}
	}
	if err := f(&l); err != nil {
		return Info{}, err
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		_, err = parseList(text)
	}
	if err == nil {
		err = ownfile.Write(filepath.Join(dir, listName), append(text, '\n'))
	}
	if err != nil {
		return Info{}, fmt.Errorf("kit: %w", err)
	}
	return l.info(), l.sweep(dir)
}

// sweep removes what the list does not name. Who has a file of it open keeps it.
func (l list) sweep(dir string) error {
	needed := []string{listName, lockName, file(l.Kernel), file(l.Initrd)}
	for _, d := range l.Disks {
		needed = append(needed, file(d))
	}
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		if e.Type().IsRegular() && !slices.Contains(needed, e.Name()) {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// keep writes a file under its digest. Everybody may read it who can reach it: a virtual
// machine is another user.
func keep(dir string, data []byte) (bundle.Digest, error) {
	d := bundle.Sum(data)
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return d, fmt.Errorf("kit: %w", err)
	}
	_, err = f.Write(data)
	return d, settle(f, err, filepath.Join(dir, file(d)))
}

// settle ends the writing of a file, and gives it its name.
func settle(f *os.File, err error, name string) error {
	if err == nil {
		err = f.Chmod(0o444)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("kit: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// A Kit is what is there, opened. It is safe for concurrent use.
type Kit struct {
	dir            string
	list           list
	kernel, initrd *os.File

	mu    sync.Mutex
	disks map[bundle.Digest]*os.File
}

// Open opens the kit in the folder, and holds its kernel and its first file system
// against their digests.
//
// # Errors
//
// One that wraps ErrNotPrepared or ErrChanged, with what to do.
func Open(dir string) (k *Kit, err error) {
	opened := &Kit{dir: dir, disks: map[bundle.Digest]*os.File{}}
	defer func() {
		if err != nil {
			opened.Close()
		}
	}()
	if opened.list, err = readList(dir); err != nil {
		return nil, err
	}
	agent, err := agentProgram()
	if err != nil {
		return nil, err
	}
	if opened.list.Agent != bundle.Sum(agent) {
		return nil, fmt.Errorf("%w: it has the agent of another version of this program", ErrChanged)
	}
	if opened.kernel, err = opened.open(opened.list.Kernel); err != nil {
		return nil, err
	}
	if opened.initrd, err = opened.open(opened.list.Initrd); err != nil {
		return nil, err
	}
	return opened, nil
}

// open opens the file of that digest, when that is what it has.
func (k *Kit) open(d bundle.Digest) (*os.File, error) {
	f, err := os.Open(filepath.Join(k.dir, file(d)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	h := sha256.New()
	if _, err = io.Copy(h, f); err == nil && hex.EncodeToString(h.Sum(nil)) != d.Hex() {
		err = errors.New("its bytes are others")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrChanged, file(d), err)
	}
	return f, nil
}

// Info says what the kit has.
func (k *Kit) Info() Info { return k.list.info() }

// Kernel and Initrd are the files of those. They stay the kit's.
func (k *Kit) Kernel() *os.File { return k.kernel }

// Initrd is the first file system.
func (k *Kit) Initrd() *os.File { return k.initrd }

// Disk returns the disk of the runtime, which is held against its digest when it is
// first asked for. It stays the kit's.
//
// # Errors
//
// One that wraps ErrNotPrepared where the kit has none, or ErrChanged.
func (k *Kit) Disk(runtime bundle.Digest) (*os.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.disks[runtime]; f != nil {
		return f, nil
	}
	d, err := k.DiskDigest(runtime)
	if err != nil {
		return nil, err
	}
	f, err := k.open(d)
	if err == nil {
		k.disks[runtime] = f
	}
	return f, err
}

// DiskDigest returns the digest of the runtime's disk.
//
// # Errors
//
// One that wraps ErrNotPrepared where the kit has none.
func (k *Kit) DiskDigest(runtime bundle.Digest) (bundle.Digest, error) {
	d, ok := k.list.Disks[runtime.String()]
	if !ok {
		return d, fmt.Errorf("%w: there is no disk of the runtime %s", ErrNotPrepared, runtime)
	}
	return d, nil
}

// Close closes all files. No machine may need them any more.
func (k *Kit) Close() {
	for _, f := range []*os.File{k.kernel, k.initrd} {
		if f != nil {
			f.Close()
		}
	}
	for _, f := range k.disks {
		f.Close()
	}
}
