package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// A Config says where the server listens and who may join. Pools are required.
type Config struct {
	Name   string // of the server, which differs within a cluster
	Listen string // HOST:PORT for runners; port 0 picks one
	// TLS is the server's certificate. Nil is allowed on loopback alone.
	TLS   *tls.Config
	Pools []Pool

	Cluster Cluster

	MaxPayload int // bytes of one message; zero: 8 MiB
	Logger     *slog.Logger
}

// A Pool is an account of its own.
type Pool struct {
	Name    string
	Members []Member
	Hosts   []Member // other control planes, and operators; this process needs none

	HostHear, HostSay []string // subjects of a control plane
}

// A Member is one who may join: the public half of its key, and its subjects.
type Member struct {
	Name, Key string
	Hear, Say []string
}

// A Cluster is several servers that are one. The zero Cluster is none.
type Cluster struct {
	Listen string   // HOST:PORT for the other servers; empty: no cluster
	Routes []string // HOST:PORT of the others; one that is there is enough
	Secret string   // that all have; required
	TLS    *tls.Config
}

// A Server is running. Close it.
type Server struct {
	s     *server.Server
	hosts map[string][]byte // seeds of this process, by pool
}

const readyIn = 30 * time.Second

// Start starts the server and returns when it listens.
func Start(c Config) (*Server, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b := &Server{hosts: map[string][]byte{}}
	public := map[string]string{}
	for _, p := range c.Pools {
		seed, key, err := newKey()
		if err != nil {
			return nil, fmt.Errorf("broker: %w", err)
		}
		b.hosts[p.Name], public[p.Name] = seed, key
	}
	o, err := c.options(public)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if b.s, err = server.NewServer(o); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if c.Logger != nil {
		b.s.SetLoggerV2(&logs{to: c.Logger}, false, false, false)
	}
	b.s.Start()
	if !b.s.ReadyForConnections(readyIn) {
		b.Close()
		return nil, fmt.Errorf("broker: it does not listen at %s", c.Listen)
	}
	return b, nil
}

// Close ends every link and waits until the server is gone.
func (b *Server) Close() {
	b.s.Shutdown()
	b.s.WaitForShutdown()
}

// Address returns where it listens.
func (b *Server) Address() string { return b.s.Addr().String() }

// ClusterAddress returns where it listens for other servers; "" where it does not.
func (b *Server) ClusterAddress() string {
	if a := b.s.ClusterAddr(); a != nil {
		return a.String()
	}
	return ""
}

// InProcessConn implements what a link within this process needs.
func (b *Server) InProcessConn() (net.Conn, error) { return b.s.InProcessConn() }

// Host returns the seed of the key by which this process is the control plane of the
// pool. It holds within this process, as long as the server runs, and is nowhere
// written.
func (b *Server) Host(pool string) []byte { return b.hosts[pool] }

// Routes returns how many links to other servers there are.
func (b *Server) Routes() int { return b.s.NumRoutes() }

func (c Config) check() error {
	var errs []error
	if len(c.Pools) == 0 {
		errs = append(errs, errors.New("there is no pool"))
	}
	if c.TLS == nil && !loopback(c.Listen) {
		errs = append(errs, fmt.Errorf("%s is not on this machine alone, and takes a certificate", c.Listen))
	}
	if l := c.Cluster.Listen; l != "" {
		if c.Cluster.TLS == nil && !loopback(l) {
			errs = append(errs, fmt.Errorf("the cluster's %s is not on this machine alone, and takes a certificate", l))
		}
		if len(c.Cluster.Secret) < 16 {
			errs = append(errs, errors.New("the cluster's secret has fewer than 16 characters"))
		}
	}
	seen := map[string]bool{}
	for _, p := range c.Pools {
		if p.Name == "" || seen[p.Name] {
			errs = append(errs, fmt.Errorf("the pool %q has no name, or stands twice", p.Name))
		}
		seen[p.Name] = true
		for _, m := range append(append([]Member{}, p.Members...), p.Hosts...) {
			if !nkeys.IsValidPublicUserKey(m.Key) || seen[m.Key] {
				errs = append(errs, fmt.Errorf("the key of %q in pool %q is none of a user, or stands twice", m.Name, p.Name))
			}
			seen[m.Key] = true
		}
	}
	return errors.Join(errs...)
}

func loopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().IsLoopback()
}

// Limits of what one link may do.
const (
	maxPayload  = 8 << 20
	maxPending  = 64 << 20 // bytes that wait for one link: a reader that is slower is cut off
	maxSubs     = 4096
	maxLinks    = 4096
	authSeconds = 5
	drop        = 10 * time.Second // a link that takes nothing for so long is cut off
)

func (c Config) options(hosts map[string]string) (*server.Options, error) {
	host, port, err := split(c.Listen)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	o := &server.Options{
		ServerName: c.Name, Host: host, Port: port, NoSigs: true, NoLog: c.Logger == nil, JetStream: false, NoSystemAccount: true,
		MaxPayload: int32(maxPayload), MaxPending: maxPending, MaxSubs: maxSubs, MaxConn: maxLinks,
		AuthTimeout: authSeconds, WriteDeadline: drop, PingInterval: 5 * time.Second, MaxPingsOut: 2, MaxTracedMsgLen: 1,
	}
	if c.MaxPayload > 0 {
		o.MaxPayload = int32(min(c.MaxPayload, 64<<20))
	}
	if c.TLS != nil {
		o.TLSConfig, o.TLS, o.TLSTimeout = floor(c.TLS), true, authSeconds
	}
	for _, p := range c.Pools {
		a := server.NewAccount(url.PathEscape(p.Name)) // servers tell each other of accounts by lines of words
		o.Accounts = append(o.Accounts, a)
		o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: hosts[p.Name], Account: a, Permissions: permissions(p.HostHear, p.HostSay),
			AllowedConnectionTypes: map[string]struct{}{"IN_PROCESS": {}}})
		for _, m := range p.Members {
			o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: m.Key, Account: a, Permissions: permissions(m.Hear, m.Say)})
		}
		for _, m := range p.Hosts {
			o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: m.Key, Account: a, Permissions: permissions(p.HostHear, p.HostSay)})
		}
	}
	if c.Cluster.Listen == "" {
		return o, nil
	}
	return o, c.Cluster.join(o)
}

func (c Cluster) join(o *server.Options) (err error) {
	o.Cluster = server.ClusterOpts{Name: "tracon", Username: "route", Password: c.Secret, AuthTimeout: authSeconds, NoAdvertise: true, ConnectRetries: 5}
	if o.Cluster.Host, o.Cluster.Port, err = split(c.Listen); err != nil {
		return err
	}
	if o.Cluster.Port == 0 {
		o.Cluster.Port = server.RANDOM_PORT
	}
	if c.TLS != nil {
		o.Cluster.TLSConfig, o.Cluster.TLSTimeout = floor(c.TLS), authSeconds
	}
	for _, r := range c.Routes {
		if _, _, err := split(r); err != nil {
			return err
		}
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r, User: url.UserPassword("route", c.Secret)})
	}
	return nil
}

// floor is c with no protocol below TLS 1.2.
func floor(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	return c
}

// permissions let in to the subjects and to answers, and to nothing else.
func permissions(hear, say []string) *server.Permissions {
	return &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: hear},
		Publish:   &server.SubjectPermission{Allow: say},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
	}
}

func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%q is no address: %w", address, err)
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q has no port", address)
	}
	return host, port, nil
}

func newKey() (seed []byte, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", err
	}
	if public, err = pair.PublicKey(); err != nil {
		return nil, "", err
	}
	seed, err = pair.Seed()
	return seed, public, err
}

// logs hands what the server says to our own log. What it says of single links
// names addresses, which are the operator's to see. What it says again and again, but for
// numbers such as a port, is told for the first, second, fourth, eighth time and so on: a
// runner that is not let in comes again every two seconds.
type logs struct {
	to *slog.Logger

	mu   sync.Mutex
	said map[string]often // by the text without its numbers
}

type often struct {
	times int
	last  time.Time
}

// mostSaid is how many sentences are counted; where there are more, all are new again. So
// is one that was not said for newAfter.
const (
	mostSaid = 256
	newAfter = time.Minute
)

func (l *logs) say(level slog.Level, format string, v []any) {
	text := strings.TrimSpace(fmt.Sprintf(format, v...))
	if n := l.times(text); n&(n-1) == 0 {
		l.to.Log(context.Background(), level, "nats: "+text, "times", n)
	}
}

// What changes from one sentence to the next though they say the same: numbers that stand
// alone, and those of ports and clients. Those within a name or an address do not.
var (
	numberAlone = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[a-zµ]{0,2}[.,]?$`)
	numberLast  = regexp.MustCompile(`:[0-9]+$`)
)

// times counts text, and returns how often it was said.
func (l *logs) times(text string) int {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = numberLast.ReplaceAllString(numberAlone.ReplaceAllString(w, "0"), "")
	}
	key := strings.Join(words, " ")
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.said[key]
	if l.said == nil || !ok && len(l.said) >= mostSaid {
		l.said = map[string]often{}
	}
	if time.Since(o.last) > newAfter {
		o.times = 0
	}
	o = often{o.times + 1, time.Now()}
	l.said[key] = o
	return o.times
}

func (l *logs) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *logs) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *logs) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l *logs) Errorf(format string, v ...any)  { l.say(slog.LevelWarn, format, v) }
func (l *logs) Debugf(string, ...any)           {}
func (l *logs) Tracef(string, ...any)           {}
