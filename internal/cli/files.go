package cli

import (
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
			return nil, fmt.Errorf("--in: %w", err)
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

// writeOutputs writes the files that a script returned below dir, which is made
// if need be. The script chose their names, so nothing leaves dir: the folder
// is opened once, and what lies in it is reached beneath that alone.
func writeOutputs(dir string, files []bundle.File) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer root.Close()
	for _, f := range files {
		name := filepath.FromSlash(f.Path)
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := root.WriteFile(name, f.Data, 0o666); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}
