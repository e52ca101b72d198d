package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tracon-go/tracon/bundle"
)

// readInputs reads what --in names: a file, or a folder with all files below
// it, each as PATH or PATH=NAME. At most max bytes are read in all; links and
// other special files are refused by name.
func readInputs(specs []string, max int64) ([]bundle.File, error) {
	var files []bundle.File
	left := max
	read := func(from, name string) error {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, left+1))
		if err != nil {
			return err
		}
		if left -= int64(len(data)); left < 0 {
			return fmt.Errorf("%s: the input files have more than %d bytes in all; `tracon policy set --max-inputs` raises the limit", from, max)
		}
		files = append(files, bundle.File{Path: name, Data: data})
		return nil
	}
	for _, spec := range specs {
		from, name := spec, ""
		if before, after, ok := strings.Cut(spec, "="); ok {
			if _, err := os.Stat(spec); err != nil { // a name that really holds "=" is taken as it is
				from, name = before, after
			}
		}
		info, err := os.Stat(from)
		if err != nil {
			return nil, hint(fmt.Errorf("--in: %w", err), "name a file or a folder that is there, as PATH, or as PATH=NAME to give it another name")
		}
		if name == "" {
			abs, err := filepath.Abs(from)
			if err != nil {
				return nil, fmt.Errorf("--in: %w", err)
			}
			name = filepath.Base(abs)
		}
		if !info.IsDir() {
			if !info.Mode().IsRegular() {
				return nil, fmt.Errorf("--in: %s is neither a file nor a folder", from)
			}
			if err := read(from, name); err != nil {
				return nil, fmt.Errorf("--in: %w", err)
			}
			continue
		}
		err = filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if !d.Type().IsRegular() {
				return fmt.Errorf("%s is not a regular file; copy what it stands for", p)
			}
			rel, err := filepath.Rel(from, p)
			if err != nil {
				return err
			}
			return read(p, path.Join(name, filepath.ToSlash(rel)))
		})
		if err != nil {
			return nil, fmt.Errorf("--in: %w", err)
		}
	}
	return files, nil
}

// readAll reads a file of at most max bytes, or standard input for "-".
func (a *app) readAll(name string, max int) ([]byte, error) {
	r := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(max)+1))
	if err == nil && len(data) > max {
		err = fmt.Errorf("%s has more than %d bytes", name, max)
	}
	return data, err
}

// An outFolder is where the files that a script returns go. The script chose
// their names, so nothing leaves it: the folder is opened once, and what lies in
// it is reached beneath that alone. The zero value is none.
type outFolder struct {
	dir  string
	root *os.Root
}

// openOut makes dir if need be, opens it, and sees that a file can be made in it:
// what a script returned cannot be had again when it turns out too late.
func openOut(dir string) (o outFolder, err error) {
	if dir == "" {
		return outFolder{}, nil
	}
	defer func() {
		if err != nil {
			err = hint(fmt.Errorf("--out: %w", err), "nothing was run; name a folder that you can write to, or one that is to be made")
		}
	}()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return outFolder{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return outFolder{}, err
	}
	probe := ".tracon-" + rand.Text()
	f, err := root.OpenFile(probe, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return outFolder{}, errors.Join(err, root.Close())
	}
	if err := errors.Join(f.Close(), root.Remove(probe)); err != nil {
		return outFolder{}, errors.Join(err, root.Close())
	}
	return outFolder{dir, root}, nil
}

func (o outFolder) close() error {
	if o.root == nil {
		return nil
	}
	return o.root.Close()
}

// write writes the files, each that can be, and returns why the others, by their
// paths, were not.
func (o outFolder) write(files []bundle.File) map[string]error {
	lost := map[string]error{}
	if o.root == nil {
		return lost
	}
	for _, f := range files {
		name := filepath.FromSlash(f.Path)
		err := o.root.MkdirAll(filepath.Dir(name), 0o777)
		if err == nil {
			err = o.root.WriteFile(name, f.Data, 0o666)
		}
		if err != nil {
			lost[f.Path] = err
		}
	}
	return lost
}
