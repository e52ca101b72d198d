package fleet

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/tracon-go/tracon/internal/ownfile"
)

// A Link says how a NATS server is reached and who asks. The zero Link reaches
// nothing.
type Link struct {
	// URLs are those of the servers, tls://HOST:PORT or, on this machine alone,
	// nats://127.0.0.1:PORT.
	URLs []string
	// Seed is an nkey's, of a user: the server has its public key alone.
	Seed []byte
	// CAs are the certificates that the server's must be signed by. Nil: the system's.
	CAs *x509.CertPool
	// Within is a server in this process; then URLs may be empty.
	Within interface{ InProcessConn() (net.Conn, error) }
}

// maxTold is how many reasons are told why a link cannot be made, until it is: each server
// has some, and a reason may have a port in it that is another each time.
const maxTold = 16

// again is how long a link that broke waits before it tries its servers anew. It is twice
// as long each time and lastAgain at most, so that a server that was started again is
// found while the runs under way still count as heard of.
const (
	again     = 200 * time.Millisecond
	lastAgain = 2 * time.Second
)

// waits returns how long a link waits when it has tried every server rounds times: up to
// a half less than what again says, for not all of a fleet shall come in one moment.
func waits(rounds int) time.Duration {
	wait := min(again<<min(max(rounds-1, 0), 8), lastAgain)
	less, _ := rand.Int(rand.Reader, big.NewInt(int64(wait/2))) // it never fails
	return wait - time.Duration(less.Int64())
}

// ErrLink is wrapped by the error for a link that cannot be as it is told.
var ErrLink = errors.New("fleet: the link")

// ReadSeed reads a file that holds the seed of a user's nkey, and that nobody else
// may read.
func ReadSeed(path string) ([]byte, error) {
	b, err := ownfile.ReadPrivate(path, 1<<10)
	if err != nil {
		return nil, err
	}
	seed := []byte(strings.TrimSpace(string(b)))
	if _, err := PublicKey(seed); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return seed, nil
}

// NewSeed returns the seed of a new key, and its public key.
func NewSeed() (seed []byte, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", err
	}
	if seed, err = pair.Seed(); err != nil {
		return nil, "", err
	}
	public, err = pair.PublicKey()
	return seed, public, err
}

// PublicKey returns the public key of a user's seed.
func PublicKey(seed []byte) (string, error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return "", fmt.Errorf("%w: no seed of an nkey", ErrLink)
	}
	public, err := pair.PublicKey()
	if err != nil || !nkeys.IsValidPublicUserKey(public) {
		return "", fmt.Errorf("%w: the seed is not that of a user", ErrLink)
	}
	return public, nil
}

// check says why the link is not to be made, or nil.
func (l Link) check() error {
	if l.Within == nil && len(l.URLs) == 0 {
		return fmt.Errorf("%w: there is no server", ErrLink)
	}
	if len(l.Seed) == 0 {
		return fmt.Errorf("%w: there are no credentials", ErrLink)
	}
	for _, text := range l.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil {
			return fmt.Errorf("%w: %.80q is no address; write tls://HOST:PORT", ErrLink, text)
		}
		switch u.Scheme {
		case "tls":
		case "nats":
			if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
				return fmt.Errorf("%w: %.80q is plain text and not on this machine; write tls://HOST:PORT", ErrLink, text)
			}
		default:
			return fmt.Errorf("%w: %.80q is neither tls:// nor nats://", ErrLink, text)
		}
	}
	return nil
}

// dial makes the link. A server that is not there yet is tried again and again; why it
// is not reached is told to the log when it is something new, and to amiss each time.
func (l Link) dial(name, inbox string, logger *slog.Logger, amiss ...func(error)) (*nats.Conn, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	told := map[string]bool{} // since the link stood last; the handlers are called one after another
	opts := []nats.Option{
		nats.Name(name), nats.CustomInboxPrefix(inbox), nats.MaxReconnects(-1), nats.CustomReconnectDelay(waits),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(5 * time.Second), nats.RetryOnFailedConnect(true),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { logger.Warn("the link to the fleet broke", "err", err) }),
		nats.ReconnectHandler(func(*nats.Conn) { clear(told); logger.Info("the link to the fleet stands again") }),
		nats.ConnectHandler(func(*nats.Conn) { clear(told) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			err = explained(err)
			for _, tell := range amiss {
				tell(err)
			}
			if text := err.Error(); !told[text] && len(told) < maxTold {
				told[text] = true
				logger.Warn("the fleet is not reached, and is tried again", "err", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			logger.Warn("the fleet's server objects", "err", err)
		}),
	}
	public, err := PublicKey(l.Seed)
	if err != nil {
		return nil, err
	}
	opts = append(opts, nats.Nkey(public, func(nonce []byte) ([]byte, error) {
		pair, err := nkeys.FromSeed(l.Seed)
		if err != nil {
			return nil, err
		}
		return pair.Sign(nonce)
	}))
	urls := strings.Join(l.URLs, ",")
	switch {
	case l.Within != nil:
		opts = append(opts, nats.InProcessServer(l.Within))
	case strings.Contains(urls, "tls://"):
		opts = append(opts, nats.Secure(&tls.Config{RootCAs: l.CAs, MinVersion: tls.VersionTLS12}))
	default:
		// What a cluster tells of its other servers would be plain text elsewhere.
		opts = append(opts, nats.IgnoreDiscoveredServers())
	}
	return nats.Connect(urls, opts...)
}

// explained is err with what to do, where that is known.
func explained(err error) error {
	_, stranger := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case stranger:
		return fmt.Errorf("%w: the server's certificate is signed by nobody who is trusted here; set fleet_ca_file to the certificates of who signed it, and write tls:// in fleet_urls", err)
	case other:
		return fmt.Errorf("%w: name the server in fleet_urls as its certificate does", err)
	case invalid:
		return fmt.Errorf("%w: the server's certificate does not hold; have it renewed, and look at this machine's clock", err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: the server speaks plain text; give it tls_cert and tls_key", err)
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("%w: the server does not know the key of fleet_seed_file; a runner's public half belongs in its fleet_members, a control plane's or an operator's in its fleet_hosts", err)
	}
	return err
}

// LoadCAs reads a file of certificates in PEM; an empty path means the system's.
func LoadCAs(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: it holds no certificate", path)
	}
	return pool, nil
}
