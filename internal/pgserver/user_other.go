//go:build !linux

package pgserver

import "syscall"

func asUser() *syscall.SysProcAttr { return nil }

func give(...string) error { return nil }
