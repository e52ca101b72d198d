package limit

import (
	"net"
	"net/netip"
	"sync"
)

// What [Listener] means by zero.
const (
	DefaultConnections = 4096
	DefaultPeerShare   = 2048 // one machine's: a proxy is one too
)

// Listener bounds the connections of l: how many there are, and how many of them one
// machine has. Those above are closed at once. Zero means 4,096, and 2,048. Machines
// are told apart by their address, those with IPv6 by its first 64 bits; where l has
// no such addresses all are one.
func Listener(l net.Listener, most, each int) net.Listener {
	if most <= 0 {
		most = DefaultConnections
	}
	if each <= 0 {
		each = DefaultPeerShare
	}
	return &listener{Listener: l, most: most, each: each, peers: map[netip.Prefix]int{}}
}

type listener struct {
	net.Listener
	most, each int

	mu    sync.Mutex
	all   int
	peers map[netip.Prefix]int
}

// Accept returns the next connection that has room.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := machine(c.RemoteAddr())
		if l.take(peer) {
			return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(peer) })}, nil
		}
		_ = c.Close()
	}
}

func (l *listener) take(peer netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.most || l.peers[peer] >= l.each {
		return false
	}
	l.all++
	l.peers[peer]++
	return true
}

func (l *listener) leave(peer netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// machine is where a connection comes from; zero where that is no address.
func machine(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	at := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := at.BitLen()
	if at.Is6() {
		bits = 64
	}
	p, err := at.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// conn gives its place back when it is closed.
type conn struct {
	net.Conn
	leave func()
}

func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// NetConn returns the connection below, for whoever asks who its peer is.
func (c *conn) NetConn() net.Conn { return c.Conn }
