package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// ErrRefused is wrapped by the error of a connection that is not made. Its text names
// the address: it is for the operator.
var ErrRefused = errors.New("outbound: not connected")

// Words for where a peer may be besides the public internet.
const (
	Loopback = "loopback" // on this machine, by http too
	Private  = "private"  // in a private network
)

// A Reach says where connections may go. The zero Reach is the public internet. It is
// safe for concurrent use.
type Reach struct {
	loopback, private bool
	setting           string
}

// ParseReach returns the Reach of the words, each one of [Loopback] and [Private].
// Setting is the name of what holds them in the configuration, for what errors say.
//
// # Errors
//
// One that names a word that is none.
func ParseReach(setting string, words []string) (Reach, error) {
	r := Reach{setting: setting}
	for _, word := range words {
		switch word {
		case Loopback:
			r.loopback = true
		case Private:
			r.private = true
		default:
			return Reach{}, fmt.Errorf("%q is no word for where the peer may be; there is: %s, %s", word, Loopback, Private)
		}
	}
	return r, nil
}

// CheckURL says why nothing is asked at u, or nil: it must be https; http is for this
// machine alone, where the word for it was given. What its name resolves to is looked
// at for each connection.
func (r Reach) CheckURL(u *url.URL) error {
	switch {
	case u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%w: %q is no address of a peer; write one such as https://peer.example.org", ErrRefused, u.Redacted())
	case u.Scheme == "https", u.Scheme == "http" && r.loopback && isHere(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%w: %s must be https; http is for this machine alone, with %s in %s", ErrRefused, u.Redacted(), Loopback, r.setting)
}

func isHere(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// Networks that are nobody's address on the public internet.
var (
	reserved = networks("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"240.0.0.0/4", "::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10")
	// Where clouds give their machines' credentials away, beside the addresses of the link.
	credentials = networks("168.63.129.16/32", "fd00:ec2::254/128", "fd20:ce::254/128")

	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

func networks(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// inner returns the IPv4 address that an IPv6 one carries, else the address.
func inner(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if !a.Is6() {
		return a
	}
	switch b := a.As16(); {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixTo4.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// Check says why no connection is made to the address, or nil.
func (r Reach) Check(a netip.Addr) error {
	a = inner(a)
	within := func(p netip.Prefix) bool { return p.Contains(a) }
	never := func(what string) error { return fmt.Errorf("%w: %s is %s", ErrRefused, a, what) }
	unless := func(said bool, what, word string) error {
		if said {
			return nil
		}
		return fmt.Errorf("%w: %s is %s; where that is meant, say %s in %s", ErrRefused, a, what, word, r.setting)
	}
	switch {
	case !a.IsValid() || a.IsUnspecified():
		return never("no address")
	case a.IsLoopback():
		return unless(r.loopback, "of this machine", Loopback)
	case slices.ContainsFunc(credentials, within):
		return never("where a cloud keeps credentials")
	case a.IsPrivate():
		return unless(r.private, "of a private network", Private)
	case a.IsLinkLocalUnicast(), a.IsMulticast():
		return never("of no other network")
	case slices.ContainsFunc(reserved, within):
		return never("reserved")
	}
	return nil
}

// Dialer returns a dialer that goes where r says, whose connections are made within the
// time. It resolves a name once, and looks at each address before it connects to it.
func (r Reach) Dialer(within time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: within, Control: r.control}
}

// control is called for each address when a connection to it is about to be made.
func (r Reach) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrRefused, network, address, err)
	}
	return r.Check(at.Addr())
}
