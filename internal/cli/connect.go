package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// apiVersion is that of the API which this program speaks.
const apiVersion = "1"

const (
	maxKey      = 16 << 10 // bytes of a file with a key: tokens of identity providers are long
	maxCA       = 4 << 20
	dialTimeout = 30 * time.Second
)

// connect asks the server who it is and whom it takes us for.
func (a *app) connect(ctx context.Context, c *config.Config) (*remote, error) {
	key, err := a.key(c)
	if err != nil {
		return nil, err
	}
	cc := client.Config{Server: c.Server, Key: key}
	if !strings.HasPrefix(c.Server, "unix:") {
		if key == "" {
			return nil, hint(errors.New("there is no key for the server "+c.Server), "set TRACON_KEY, or name a file that holds it with --key-file")
		}
		if cc.Transport, err = transport(c.CAFile); err != nil {
			return nil, err
		}
	} else if key == "" {
		cc.Tenant = a.tenant
	}
	return a.reach(ctx, cc, c.Content)
}

// besideTime is how long the server that holds the data folder may take to say who it
// is. One that is hung is not worth more; one on a busy machine is.
const besideTime = 30 * time.Second

// beside returns the `tracon serve` that holds the data folder, through its socket,
// where the kernel tells it who we are. It returns nil where there is none, or none
// that answers us: several programs on one data folder are normal, so the folder
// itself is as good.
func (a *app) beside(ctx context.Context, c *config.Config) *remote {
	path := filepath.Join(c.Data, daemon.SocketFile)
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, besideTime)
	defer stop()
	r, err := a.reach(ctx, client.Config{Server: (&url.URL{Scheme: "unix", Path: path}).String(), Tenant: a.tenant}, c.Content)
	if err != nil {
		return nil
	}
	return r
}

// reach asks the server of cc who it is and whom it takes us for. Where cc names a
// tenant, the server acts for the platform too.
func (a *app) reach(ctx context.Context, cc client.Config, limits bundle.Limits) (*remote, error) {
	cc.UserAgent = "tracon/" + version().Version
	r := &remote{server: cc.Server, given: a.tenantGiven, limits: limits, folder: os.TempDir(), progress: a.progress}
	var err error
	if r.c, err = client.New(cc); err != nil {
		return nil, hint(errors.New("--server: "+strings.TrimPrefix(err.Error(), "client: ")), "write --server as https://HOST[:PORT], or unix:///PATH for a socket; http:// is for this machine alone")
	}
	r.platform = r.c
	if cc.Tenant != "" {
		cc.Tenant = ""
		if r.platform, err = client.New(cc); err != nil {
			return nil, err
		}
	}
	v, err := r.c.Version(ctx)
	if err != nil {
		return nil, r.told(ctx, err, nil)
	}
	if v.API != apiVersion {
		return nil, hint(fmt.Errorf("the server %s (version %s) speaks version %q of the API, and this program version %s", r.server, v.Version, v.API, apiVersion), "take a tracon as old or as new as the server's")
	}
	if r.who, err = r.c.Whoami(ctx); err != nil {
		return nil, r.told(ctx, err, nil)
	}
	r.version, r.tenant = v.Version, a.tenant
	if r.who.Tenant == "" {
		return r, nil
	}
	if a.tenantGiven && a.tenant != r.who.Tenant {
		return nil, hint(fmt.Errorf("the key is of tenant %s, and --tenant says %s", r.who.Tenant, a.tenant), "leave --tenant away, or take a key of that tenant")
	}
	r.tenant = r.who.Tenant
	return r, nil
}

// key returns the key for the server: that in the file of --key-file, else that of the
// variable, else that in the file of the setting. It is never a flag itself, which every
// user of the machine can read.
func (a *app) key(c *config.Config) (string, error) {
	if key := a.getenv("TRACON_KEY"); key != "" && a.keyFile == "" {
		return key, nil
	}
	if c.KeyFile == "" {
		return "", nil
	}
	f, err := os.Open(c.KeyFile)
	if err != nil {
		return "", hint(fmt.Errorf("the key: %w", err), "name the file that holds it with --key-file, or set TRACON_KEY")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("the key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return "", hint(fmt.Errorf("others may read the key in %s", c.KeyFile), "chmod 600 %s, and have the key rotated if somebody may have read it", quoteWords(c.KeyFile))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	key := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", fmt.Errorf("the key: %w", err)
	case key == "" || len(text) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", hint(fmt.Errorf("%s holds no key", c.KeyFile), "it holds the key alone, such as tracon_…, in one line")
	}
	return key, nil
}

// transport carries requests to a server of another machine, which is trusted by the
// system's certificates, or by those of the file.
func transport(caFile string) (http.RoundTripper, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		f, err := os.Open(caFile)
		if err != nil {
			return nil, hint(fmt.Errorf("--ca-file: %w", err), "name a file of certificates in PEM")
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxCA))
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, hint(fmt.Errorf("--ca-file: %s holds no certificate", caFile), "name a file of certificates in PEM")
		}
	}
	return &http.Transport{
		Proxy:           http.ProxyFromEnvironment, // which sees the name of the server alone, and nothing that goes to this machine
		DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig: t, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
	}, nil
}
