//go:build !linux && !darwin

package daemon

import (
	"errors"
	"net"
)

// hasSocket: the system does not tell who is at the other end of a socket, so there
// is none.
const (
	hasSocket = false
	maxSocket = 0
)

func peerUID(*net.UnixConn) (int, error) {
	return -1, errors.New("this system does not tell who is at the other end of a socket")
}
