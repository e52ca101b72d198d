//go:build linux && (amd64 || arm64)

package container

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A talk is the socket to the first process of a container.
type talk struct{ f *os.File }

// A word is a message of it. See init/amd64.s.
type word struct {
	tag    byte
	number uint32
	value  int64
	pid    int // of the sender, from the kernel; zero: none of the host's
}

// newTalk returns the two ends of a socket.
func newTalk() (ours talk, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return talk{}, nil, os.NewSyscallError("socketpair", err)
	}
	err = errors.Join(unix.SetNonblock(pair[0], true), unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	ours, theirs = talk{os.NewFile(uintptr(pair[0]), "talk")}, os.NewFile(uintptr(pair[1]), "talk")
	if err != nil {
		ours.f.Close()
		theirs.Close()
		return talk{}, nil, err
	}
	return ours, theirs, nil
}

// hear waits for a word until the deadline of the socket. It returns io.EOF when nobody
// can say one any more.
func (t talk) hear() (w word, err error) {
	conn, err := t.f.SyscallConn()
	if err != nil {
		return w, err
	}
	buf, oob := make([]byte, 17), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	var n, m int
	var heard error
	err = conn.Read(func(fd uintptr) bool {
		n, m, _, _, heard = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		return heard != unix.EAGAIN && heard != unix.EINTR
	})
	switch {
	case err != nil:
		return w, err
	case heard == unix.ECONNRESET || heard == nil && n == 0:
		return w, io.EOF
	case heard != nil:
		return w, os.NewSyscallError("recvmsg", heard)
	case n != 16:
		return w, errors.New("the first process of a container said what it never says")
	}
	w = word{tag: buf[0], number: binary.LittleEndian.Uint32(buf[4:]), value: int64(binary.LittleEndian.Uint64(buf[8:]))}
	if list, err := unix.ParseSocketControlMessage(oob[:m]); err == nil {
		for _, c := range list {
			if cred, err := unix.ParseUnixCredentials(&c); err == nil {
				w.pid = int(cred.Pid)
			}
		}
	}
	return w, nil
}

// prepare sends what the first process needs before it can say that it is there.
func (t talk) prepare(processes int, relays bool, filter []byte) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(processes))
	b = binary.LittleEndian.AppendUint64(b, uint64(processes))
	var relay uint64
	if relays {
		relay = 1
	}
	b = binary.LittleEndian.AppendUint64(b, relay)
	_, err := t.f.Write(append(b, filter...))
	return err
}

// letGo lets it start the program.
func (t talk) letGo() error {
	_, err := t.f.Write([]byte{1})
	return err
}
