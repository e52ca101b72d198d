// Package rootfs makes root file systems of this machine's own programs, for
// tests: real ones, in which real interpreters run.
package rootfs

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Scripts are the programs that the suites' scripts call, and one (pathchk) that they
// drop from memory.
var Scripts = []string{
	"/bin/bash", "/bin/sh", "/usr/bin/cat", "/usr/bin/chmod", "/usr/bin/env", "/usr/bin/grep", "/usr/bin/head", "/usr/bin/id", "/usr/bin/ln",
	"/usr/bin/ls", "/usr/bin/mkdir", "/usr/bin/mkfifo", "/usr/bin/pathchk", "/usr/bin/rm", "/usr/bin/sed", "/usr/bin/setsid", "/usr/bin/sleep", "/usr/bin/tr",
	"/usr/bin/true", "/usr/bin/truncate",
}

// Python are what the distribution's Python needs.
var Python = []string{"/usr/bin/python3", "/usr/lib/python3*"}

// Node returns what Node.js needs: where its distribution keeps parts of it apart, as
// Debian's does, those too.
func Node() []string {
	need := []string{"/usr/bin/node"}
	for _, name := range []string{"acorn", "acorn-walk", "cjs-module-lexer", "undici"} {
		if _, err := os.Stat(nodeFolder + "/" + name); err == nil {
			need = append(need, nodeFolder+"/"+name)
		}
	}
	return need
}

const nodeFolder = "/usr/share/nodejs"

// Make makes a root file system in the folder: the files and folders that the
// patterns match, the libraries of the programs among them, and the links by
// which the machine reaches them.
func Make(dir string, patterns ...string) error {
	m := maker{dir: dir, done: map[string]bool{}}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("rootfs: there is no %s", pattern)
		}
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := m.add(path); err != nil {
				return err
			}
		}
	}
	return nil
}

type maker struct {
	dir  string
	done map[string]bool
}

// add adds what lies at the path, by the way on which it is reached.
func (m *maker) add(path string) error {
	if path == "/" || m.done[path] {
		return nil
	}
	m.done[path] = true
	if err := m.add(filepath.Dir(path)); err != nil {
		return err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	if real := filepath.Join(parent, filepath.Base(path)); real != path {
		return m.add(real)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(m.dir, path)); err != nil {
			return err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(parent, target)
		}
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return m.add(target)
	case fs.ModeDir:
		if err := os.Mkdir(filepath.Join(m.dir, path), 0o755); err != nil {
			return err
		}
		if strings.HasPrefix(filepath.Base(path), "python3") || filepath.Dir(path) == nodeFolder {
			return m.tree(path)
		}
		return nil
	case 0:
		if err := copyFile(path, filepath.Join(m.dir, path), info); err != nil {
			return err
		}
		return m.libraries(path)
	}
	return nil
}

// left are the parts of Python's library that no test needs.
var left = []string{"test", "lib2to3", "idlelib", "ensurepip", "pydoc_data", "tkinter", "dist-packages"}

func (m *maker) tree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(left, e.Name()) || strings.HasPrefix(e.Name(), "config-") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := m.add(path); err != nil {
			return err
		}
		if e.IsDir() {
			if err := m.tree(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// libraries adds what a program or a library loads.
func (m *maker) libraries(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return nil // no program
	}
	defer f.Close()
	for _, s := range f.Progs {
		if s.Type == elf.PT_INTERP {
			text, err := io.ReadAll(s.Open())
			if err != nil {
				return err
			}
			if err := m.add(strings.TrimRight(string(text), "\x00")); err != nil {
				return err
			}
		}
	}
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil // a static one
	}
	if slices.Contains(names, "libc.so.6") {
		names = append(names, "libgcc_s.so.1") // the C library loads it where a thread ends by itself, and dies without it
	}
	for _, name := range names {
		found := ""
		for _, pattern := range []string{"/lib/*-linux-gnu/", "/usr/lib/*-linux-gnu/", "/lib64/", "/usr/lib64/", "/lib/", "/usr/lib/"} {
			if list, _ := filepath.Glob(pattern + name); found == "" && len(list) > 0 {
				found = list[0]
			}
		}
		if found == "" {
			return fmt.Errorf("rootfs: %s needs %s, which is in no folder of libraries", path, name)
		}
		if err := m.add(found); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, info fs.FileInfo) error {
	if err := os.Link(from, to); err == nil { // it is only read
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
