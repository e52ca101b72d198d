package daemon

import (
	"net"
	"os"
	"strings"
)

// notify tells the service manager how this process is, where it has one that wants
// to know (sd_notify). Nobody else may tell it: the variable is taken away, so that
// nothing that is started has it.
type notify struct{ address string }

func newNotify() notify {
	n := notify{os.Getenv("NOTIFY_SOCKET")}
	_ = os.Unsetenv("NOTIFY_SOCKET") // fails for no name that there is
	if strings.HasPrefix(n.address, "@") {
		n.address = "\x00" + n.address[1:]
	}
	return n
}

// tell sends a state, such as "READY=1". A manager that does not listen any more is
// no reason to stop.
func (n notify) tell(state string) {
	if n.address == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.address, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = c.Write([]byte(state))
	_ = c.Close()
}
