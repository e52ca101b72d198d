package daemon

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/wire/ticket"
)

const maxSecret = 64 << 10 // bytes of a file with a key or certificates

// openRemote opens the executor that the settings remote… name. The runner is not asked
// yet.
func openRemote(r config.Remote) (*remote.Executor, error) {
	if r.Address == "" {
		return nil, errors.New("it has no address: set remote to that of a runner service, such as https://runner.example.com")
	}
	c := remote.Config{Address: r.Address, Reach: r.Reach, Runner: r.Name}
	if r.KeyFile != "" {
		c.Key = func() (string, error) {
			text, err := readSmall(r.KeyFile, true)
			return strings.TrimSpace(string(text)), err
		}
		if _, err := c.Key(); err != nil {
			return nil, fmt.Errorf("remote_key_file: %w", err)
		}
	}
	if (r.Cert == "") != (r.CertKey == "") {
		return nil, errors.New("of remote_cert and remote_cert_key one is set: set both, or none")
	}
	if r.Cert != "" {
		cert, err := ClientCertificate(r.Cert, r.CertKey)
		if err != nil {
			return nil, fmt.Errorf("remote_cert and remote_cert_key: %w", err)
		}
		c.Certificate = &cert
	}
	if r.CA != "" {
		text, err := readSmall(r.CA, false)
		if err != nil {
			return nil, fmt.Errorf("remote_ca: %w", err)
		}
		c.Roots = x509.NewCertPool()
		if !c.Roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("remote_ca: %s holds no certificate in PEM", r.CA)
		}
	}
	if r.TicketKey != "" {
		key, err := remoteTicketKey(r.TicketKey)
		if err != nil {
			return nil, fmt.Errorf("remote_ticket_key: %w", err)
		}
		if c.Signer, err = ticket.NewSigner(key); err != nil {
			return nil, fmt.Errorf("remote_ticket_key: %w", err)
		}
	}
	return remote.New(c)
}

func remoteTicketKey(path string) (ed25519.PrivateKey, error) {
	text, err := readSmall(path, true)
	if err != nil {
		return nil, err
	}
	return ticket.ReadPrivateKey(text)
}

// readSmall reads a file of an operator's, by a link too, as some platforms mount them. A
// secret is one that nobody else may read.
func readSmall(path string, secret bool) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if secret && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read %s: chmod 600 it, and have the key changed if somebody may have read it", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(text) > maxSecret {
		err = fmt.Errorf("%s has more than %d bytes", path, maxSecret)
	}
	return text, err
}

// ClientCertificate reads a certificate and its key, which nobody else may read.
func ClientCertificate(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := readSmall(certFile, false)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readSmall(keyFile, true)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// away reports whether the executor sends scripts to other hosts.
func away(executor string) bool { return executor == remote.Name || executor == fleet.Name }

// elsewhere is an entry of the allow-list of a host whose scripts run elsewhere: the
// name of a runtime there, and never a path.
func elsewhere(ext, text string) (gate.Interpreter, error) {
	name, in, ok := config.InRuntime(text)
	if !ok || in != "" || name == "" {
		return gate.Interpreter{}, fmt.Errorf("scripts run elsewhere, and %q is a path; name a runtime of the runner, such as %s=runtime:python-3.12", text, ext)
	}
	return gate.Interpreter{Name: name}, gate.CheckRuntime(name)
}

// checkRemote says what of the settings remote… cannot hold together.
func checkRemote(u *UnsafeError, c *config.Config, _ time.Time) {
	if c.Executor != remote.Name {
		for _, s := range config.Settings {
			if (s.Key == remote.Name || strings.HasPrefix(s.Key, "remote_")) && c.Given(s.Key) {
				u.add("%s is set, and the executor is %s: say executor: %s, or take it away.", s.Key, c.Executor, remote.Name)
			}
		}
		return
	}
	e, err := openRemote(c.Remote)
	if err != nil {
		u.add("the executor %s cannot be used: %v.", remote.Name, err)
		return
	}
	_ = e.Close() // it asked nobody
}
