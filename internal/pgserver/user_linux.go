package pgserver

import (
	"os"
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
