//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Groups of rights on files and folders.
const (
	rightsToRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsToRun   = rightsToRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsToWrite = rightsToRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	rightsOnFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// A grounds is a file or a folder and what may be done there and below.
type grounds struct {
	path   string
	rights uint64
}

// A landlock is what the kernel here knows of Landlock. Everything it knows is
// handled, and so denied where no rule grants it.
type landlock struct {
	abi   int
	attr  unix.LandlockRulesetAttr
	bytes int // of attr that the kernel knows
}

// leastLandlock is the first version that covers truncation; before it a file
// outside could be emptied.
const leastLandlock = 3

// landlocks are the versions by what they added, the newest first. Which rights
// a kernel knows is asked of the kernel, not of its version.
var landlocks = []landlock{
	{10, unix.LandlockRulesetAttr{Handled_access_fs: 1<<17 - 1, Handled_access_net: 15, Scoped: 3}, 24}, // UDP
	{9, unix.LandlockRulesetAttr{Handled_access_fs: 1<<17 - 1, Handled_access_net: 3, Scoped: 3}, 24},   // connecting to a socket by its path
	{6, unix.LandlockRulesetAttr{Handled_access_fs: 1<<16 - 1, Handled_access_net: 3, Scoped: 3}, 24},   // signals, abstract sockets
	{5, unix.LandlockRulesetAttr{Handled_access_fs: 1<<16 - 1, Handled_access_net: 3}, 16},              // ioctl on devices
	{4, unix.LandlockRulesetAttr{Handled_access_fs: 1<<15 - 1, Handled_access_net: 3}, 16},              // TCP
	{3, unix.LandlockRulesetAttr{Handled_access_fs: 1<<15 - 1}, 8},                                      // truncation
}

// createRuleset is the system call of that name: with a flag and no attributes it
// returns the version, else a file.
func createRuleset(attr *unix.LandlockRulesetAttr, bytes, flags int) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), uintptr(bytes), uintptr(flags))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// findLandlock asks the kernel, by its system call.
func findLandlock(create func(attr *unix.LandlockRulesetAttr, bytes, flags int) (int, error)) (landlock, error) {
	abi, err := create(nil, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != nil {
		return landlock{}, fmt.Errorf("the kernel has no Landlock: %w", err)
	}
	if abi < leastLandlock {
		return landlock{}, fmt.Errorf("the kernel has version %d of Landlock, and version %d is needed", abi, leastLandlock)
	}
	for _, l := range landlocks {
		if l.abi > abi {
			continue
		}
		if fd, err := create(&l.attr, l.bytes, 0); err == nil {
			unix.Close(fd)
			l.abi = abi
			return l, nil
		}
	}
	return landlock{}, fmt.Errorf("the kernel has version %d of Landlock and accepts no rules", abi)
}

// rules adds the steps that make rules for the grounds, which restrict nothing yet.
func (l landlock) rules(p *program, list []grounds) {
	p.stage = stageLandlock
	attr := words(l.attr.Handled_access_fs, l.attr.Handled_access_net, l.attr.Scoped)
	rules := variable(rulesAt)
	p.call(unix.SYS_LANDLOCK_CREATE_RULESET, p.bytes(attr), number(l.bytes), number(0)).into(rules)
	for _, g := range list {
		rule := p.record(words(g.rights&l.attr.Handled_access_fs, 0)) // the second word is the file
		p.call(unix.SYS_OPENAT, atCwd, p.text(g.path), number(unix.O_PATH|unix.O_CLOEXEC), number(0)).into(variable(rule.n + 8))
		p.call(unix.SYS_LANDLOCK_ADD_RULE, rules.value(), number(unix.LANDLOCK_RULE_PATH_BENEATH), rule, number(0))
	}
}

// restrict adds the step by which the rules restrict the process.
func (p *program) restrict() {
	p.stage = stageLandlock
	p.call(unix.SYS_LANDLOCK_RESTRICT_SELF, variable(rulesAt).value(), number(0))
}
