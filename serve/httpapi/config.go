package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/toolcall"
)

// An Authenticator says who sent a request. It must be safe for concurrent use.
type Authenticator interface {
	// Authenticate returns whom the credential of r is of. It looks at nothing of r
	// that decides what is asked for, and does not read the body.
	//
	// # Errors
	//
	// One that wraps ErrUnauthenticated where there is no credential, or none that
	// holds; what it says goes to the log alone. Any other error means that it could
	// not be found out.
	Authenticate(r *http.Request) (access.Principal, error)
}

// A Reauthenticator is an [Authenticator] that looks otherwise at the credential of a
// request that it let in already, which is looked at again while its call waits or its
// stream lasts. One that bounds how often it looks at credentials must be one: what it
// refuses to look at would hold on.
type Reauthenticator interface {
	// AuthenticateAgain does what Authenticate does, of the same errors, without bounds
	// and without counting. It may be called while another goroutine answers r.
	AuthenticateAgain(r *http.Request) (access.Principal, error)
}

// Again returns what looks again at the credential of a request that a let in: a's
// AuthenticateAgain where it has that, else its Authenticate.
func Again(a Authenticator) func(r *http.Request) (access.Principal, error) {
	if again, ok := a.(Reauthenticator); ok {
		return again.AuthenticateAgain
	}
	return a.Authenticate
}

// ErrUnauthenticated is wrapped by the error of an [Authenticator] for a request
// without a credential, or with one that does not hold.
var ErrUnauthenticated = errors.New("httpapi: no credential that holds")

// A Limiter bounds requests by who sends them; that of serve/limit is one. It must be
// safe for concurrent use.
type Limiter interface {
	// Enter takes a request of p in; run says that it starts a run. Leave is called once
	// when it is answered. Leave is nil where it is too much, and the request may be
	// sent again after that time.
	Enter(ctx context.Context, p access.Principal, run bool) (leave func(), after time.Duration)
}

// A Runner is what the API asks of the runner; *tracon.Runner is one.
type Runner interface {
	// Explain asks every gate about the call and runs nothing.
	Explain(ctx context.Context, call gate.Call) ([]gate.Verdict, error)

	// Standing returns how strong the executor is.
	Standing(ctx context.Context) (gate.Standing, error)

	// Ready says why nothing can run, or nil.
	Ready(ctx context.Context) error
}

// A Host is what the platform asks of a host beside its settings.
type Host interface {
	// Posture returns which walls the executor puts around a script on this host.
	Posture(ctx context.Context) (client.Posture, error)

	// Fixed reports whether a configuration file says the host's settings, so that they
	// cannot be changed.
	Fixed() bool

	// Probe finds what runs scripts of the extension: an absolute path, one in a runtime
	// ("runtime:NAME:/path"), or, for an empty text, wherever it is. Its error is shown
	// to the platform.
	Probe(ctx context.Context, ext, text string) (gate.Interpreter, error)

	// Runtimes returns the runtimes, by name.
	Runtimes(ctx context.Context) ([]client.Runtime, error)

	// ImportRuntime unpacks the tar archive and gives it the name in n. An image in it must
	// be made for the platform, such as linux/arm64; empty: linux and this machine's
	// processor. Its errors are those of admin.Admin.NameRuntime, and image.ErrContent,
	// whose text is shown.
	ImportRuntime(ctx context.Context, n admin.Naming, platform string, archive io.Reader) (client.ImportedRuntime, error)

	// RemoveRuntime takes the name away. Its errors are those of admin.Admin.RemoveRuntime.
	RemoveRuntime(ctx context.Context, actor, name, reason string) (client.RemovedRuntime, error)

	// DeleteTenant deletes the tenant for ever; with preview it only counts what that would
	// take away. Seen is asked before anything is done, and may refuse. Its errors are
	// those of admin.Admin.MarkDeleted and admin.Admin.Withdraw, and admin.ErrUnderWay.
	DeleteTenant(ctx context.Context, by access.Principal, name, reason string, preview bool, seen func(access.Tenant) error) (client.Deletion, error)

	// VerifyLog computes the whole log again and compares it with what was signed. Its
	// errors are those of audit.Log.VerifyClaims.
	VerifyLog(ctx context.Context) (audit.Verified, error)

	// Fsck checks that what is kept agrees with the log. It stops when ctx ends. The answer
	// has the first findings, which are shown to the platform, and counts all.
	Fsck(ctx context.Context) (client.Checked, error)

	// Retention returns how long what is kept beside the log stays: no time is nil.
	Retention() client.Retention

	// Erase takes away what is over its time by r, where nil is the host's own; with preview
	// it only counts. For times that cannot hold its error is the problem client.Invalid;
	// else they are those of retention.Apply.
	Erase(ctx context.Context, actor string, r client.Retention, preview bool) (client.Erasure, error)
}

// A Store is what the API reads of what is kept; every store of this module is one.
type Store interface {
	admin.Store
	toolcall.Store
	toolcall.Meter
	idempotency.Store
}

// Limits when a [Config] leaves them zero.
const (
	DefaultMaxBody   = 256 << 10        // bytes of a body that says nothing else in its operation
	DefaultBodyTime  = 30 * time.Second // in which such a body must have come
	maxScannedLeaves = 10_000           // entries of the log that one request looks at
)

// A Config says what the API works on.
type Config struct {
	Authenticator Authenticator // required
	Admin         *admin.Admin  // required
	Store         Store         // required; the same as Admin's
	Contents      gate.Contents // required; the same as Admin's
	Log           *audit.Log    // required; the same as Admin's
	Runner        Runner        // required
	Runs          *runs.Runs    // required; over the same runner, and closed by the host before it

	// Folders are the host's folders of skills, which all tenants have. Nil: there are none.
	Folders *skill.Library

	// Spool is the folder in which what is uploaded waits, in files that have no name.
	// Empty: os.TempDir().
	Spool string

	// Notary proves the log. Nil: what proves it is not offered.
	Notary *notary.Notary

	// Host is what the platform asks of this host. Nil: it is not offered.
	Host Host

	// Authorizer is asked after the roles have said yes, and can only narrow. Nil: the
	// roles decide alone.
	Authorizer access.Authorizer

	// Limiter bounds the requests of those who have a credential. Nil: nobody is bounded.
	Limiter Limiter

	// Prefix is the path below which it is mounted, such as "/tracon". Empty: the root.
	Prefix string

	// Instance is this host process, as gate.Config has it. Empty: a key whose host died
	// stands for its call until its time is over.
	Instance idempotency.Instance

	Version string       // of the program, as it is told; empty: "unknown"
	Logger  *slog.Logger // gets one line for each request; nil: slog.Default()
}

func (c Config) check() error {
	switch {
	case c.Authenticator == nil:
		return errors.New("httpapi: Config has no Authenticator")
	case c.Admin == nil, c.Store == nil, c.Contents == nil, c.Log == nil, c.Runner == nil, c.Runs == nil:
		return errors.New("httpapi: Config needs Admin, Store, Contents, Log, Runner and Runs")
	case c.Prefix != "" && (c.Prefix[0] != '/' || c.Prefix[len(c.Prefix)-1] == '/'):
		return errors.New("httpapi: Config.Prefix begins with a slash and does not end with one")
	}
	return nil
}
