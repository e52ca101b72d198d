package pgserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// nobody is whom the server runs as where root runs the tests: it refuses root.
const nobody = 65534

func asUser() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return attr
}

func give(paths ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, path := range paths {
		if err := os.Chown(path, nobody, nobody); err != nil {
			return err
		}
	}
	return nil
}

// Pause stops the server and all that it started: it keeps every connection, and
// answers nothing. Resume has it go on.
func (s *Server) Pause() error { return s.all(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.all(syscall.SIGCONT) }

func (s *Server) all(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return errors.New("postgres does not run")
	}
	parent := s.run.process.Pid
	// The first process comes first, so that it starts no others.
	if err := syscall.Kill(parent, sig); err != nil {
		return err
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var state string
		var above int
		if _, err := fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &above); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if above != parent {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			err = syscall.Kill(pid, sig)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
