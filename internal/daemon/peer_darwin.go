package daemon

import (
	"net"

	"golang.org/x/sys/unix"
)

// hasSocket: the system tells who is at the other end of a socket. MaxSocket is the
// most bytes of a socket's path.
const (
	hasSocket = true
	maxSocket = 103
)

// peerUID returns the user at the other end, as the system knows.
func peerUID(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	uid = -1
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Xucred
		if cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); err == nil {
			uid = int(cred.Uid)
		}
	})
	if cerr != nil {
		return -1, cerr
	}
	return uid, err
}
