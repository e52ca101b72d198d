package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/image/registry"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/spool"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/toolcall"
)

// A backend is what a verb acts on, for one tenant and one actor. What it returns
// reads the same wherever it comes from, so that a verb's output is written once.
// It is not safe for concurrent use.
type backend interface {
	Tenant() string // whose everything is

	// SkillName returns the name of the skill that word means.
	SkillName(ctx context.Context, word string) (string, error)

	records
	grants
	policies
	calls
	logs
	skills
	hosts
	identities
	upkeep
}

// records are what came of admitted calls.
type records interface {
	// Calls returns the newest calls.
	Calls(ctx context.Context, f toolcall.Filter) ([]toolcall.Record, error)

	// Usage returns what the calls came to by day and skill, the newest day first.
	Usage(ctx context.Context, f toolcall.DailyFilter) ([]toolcall.Daily, error)

	// Call returns the record of one call with its admission and, where it has
	// one, its ending in the log; toolcall.ErrNotFound where there is none.
	Call(ctx context.Context, id string) (toolcall.Record, []audit.Leaf, error)
}

// grants are who may run what.
type grants interface {
	// Review returns what a reviewer reads; with the text of every file where full is true.
	Review(ctx context.Context, ref grant.Ref, full bool) (reviewJSON, error)

	// Difference returns the grant that decides for ref and what has changed since:
	// the zero Grant where there was never one.
	Difference(ctx context.Context, ref grant.Ref) (grant.Grant, []changeJSON, error)

	// Grant grants what g names. The backend knows the actor; an empty MinTier
	// means the tier in force. The errors are those of [admin.Admin.Grant].
	Grant(ctx context.Context, g admin.Granting) (grant.Grant, error)
	Grants(ctx context.Context, f grant.Filter) ([]listedGrant, error)
	Revoke(ctx context.Context, id, reason string) (grant.Grant, error)
}

// listedGrant is a grant with its state now, of which the grant itself knows not all: a
// newer one may decide.
type listedGrant struct {
	grant.Grant
	State string `json:"state"`
}

// decides reports whether it is what lets something run.
func (g listedGrant) decides() bool { return g.State == "in force" }

// policies are what holds for the tenant and for the host.
type policies interface {
	// Policy returns the tenant's policy, with the defaults of what is not set.
	Policy(ctx context.Context) (gate.Policy, error)

	// SetPolicy changes what the flags name, and returns it with defaults.
	SetPolicy(ctx context.Context, f policyFlags) (gate.Policy, error)

	Host(ctx context.Context) (gate.Host, error)
	SetHost(ctx context.Context, c hostChange) (gate.Host, error)

	// HostKept says where the host's settings are kept, for people.
	HostKept() string
}

// A hostChange is what is to change in the host's settings; nil leaves a field alone.
type hostChange struct {
	enabled      *bool
	network      *gate.Network
	require      *[]string
	interpreters map[string]string // by extension: a path, "runtime:…", or empty for wherever it is
}

// calls is asking the gates, and running.
type calls interface {
	// Declare returns how the script takes its arguments, as the skill says now.
	Declare(ctx context.Context, skill, script string) (gate.Declaration, error)

	// Explain asks every gate.
	Explain(ctx context.Context, c gate.Call) ([]gate.Verdict, error)

	// Run runs it and waits for the end: what [tracon.Runner.Run] returns. Once ctx is
	// done the script is stopped, wherever it runs, and the error wraps tracon.ErrCancelled.
	Run(ctx context.Context, c gate.Call) (ran, error)

	// GrantsAtOnce reports whether `run --grant` exists here.
	GrantsAtOnce() bool

	// OpenHint says what opens the switch and the allow-list.
	OpenHint() string
}

// ran is what came of a call, with what the seal of an outcome keeps for itself.
type ran struct {
	tracon.Outcome
	audit *auditJSON // nil: it was not admitted
	model string     // all that a model would read
}

// logs is the log.
type logs interface {
	// Entries returns the entries that f takes, the oldest first: the tenant's, or
	// everybody's. It may return others too.
	Entries(ctx context.Context, f entryFilter) iter.Seq2[audit.Leaf, error]

	// VerifyLog computes the log again and compares it with what was signed; see
	// [daemon.House.VerifyLog].
	VerifyLog(ctx context.Context, against daemon.Against, progress func(uint64)) (audit.Verified, error)

	// Prove returns the receipt of an entry, and the entry; with whosever it may be
	// another tenant's. It may be without.
	Prove(ctx context.Context, index uint64, whosever bool) (receipt []byte, leaf audit.Leaf, err error)

	// CheckReceipt opens a receipt with the log's keys, and says whether the log
	// still has what it proves. It returns the entry and what signed it.
	CheckReceipt(ctx context.Context, receipt []byte) (audit.Leaf, audit.Checkpoint, error)

	// Checkpoint signs the log, and returns the keys that ever signed it, the last
	// one last.
	Checkpoint(ctx context.Context) (audit.Checkpoint, []audit.PublicKey, error)

	// RotateLogKey replaces the key that signs the log, and returns the new one.
	RotateLogKey(ctx context.Context, reason string) (audit.PublicKey, error)
}

// skills are the tenant's, and those in the configured folders.
type skills interface {
	Skills(ctx context.Context) (skillsJSON, error)
	Skill(ctx context.Context, word string) (skillJSON, error)
	Lint(ctx context.Context, word string) ([]skill.Diagnostic, error)

	// Spool takes the files of a skill that is read here, within Limits.
	Spool() *spool.Spool
	Limits() bundle.Limits

	// Import keeps a skill. The backend knows the actor and the tenant.
	Import(ctx context.Context, i admin.Importing) (admin.Version, error)

	// Versions returns the history of an imported skill, the newest first.
	Versions(ctx context.Context, name string) ([]admin.Version, error)

	// Content returns the content of a version. Files that come from elsewhere go to aside.
	Content(ctx context.Context, aside *spool.Spool, v admin.Version) (bundle.Content, error)

	// InFolder returns the content of the skill in a configured folder; ok is false
	// where there is none.
	InFolder(aside *spool.Spool, name string) (c bundle.Content, ok bool, err error)

	DeleteSkill(ctx context.Context, name, reason string) (admin.Version, error)
}

// hosts is the installation.
type hosts interface {
	Runtimes(ctx context.Context) ([]daemon.Runtime, error)

	// Runtime returns the runtime of that name; with verify all of it was read and
	// compared with its digest.
	Runtime(ctx context.Context, name string, verify bool) (daemon.Runtime, error)

	// ImportRuntime keeps a root file system under a name: the folder dir or, where
	// dir is empty, the archive r. See [daemon.House.ImportRuntime].
	ImportRuntime(ctx context.Context, n admin.Naming, dir string, r io.Reader, o oci.Options) (daemon.Imported, error)

	// PullRuntime keeps an image of a registry under a name. It is this machine that
	// asks the registry, with the credentials of who calls: a server is sent what came.
	PullRuntime(ctx context.Context, n admin.Naming, reference string, from registry.Options, o oci.Options) (daemon.Imported, error)
	RemoveRuntime(ctx context.Context, name, reason string) (meant bundle.Digest, kept bool, err error)

	// ListHint says how to list an interpreter in the runtime of that name.
	ListHint(name string) string

	// Examine looks at what a run needs. An empty tier means the one that the
	// policy and the grants ask for.
	Examine(ctx context.Context, tier grant.Tier) (examination, error)
}

// identities are who may ask through a server. The backend knows the actor and the
// tenant; with platform it is the platform's keys that are meant.
type identities interface {
	// CreateKey and RotateKey return the key with the text of its secret, which nobody
	// can have again. The errors are those of [admin.Admin].
	CreateKey(ctx context.Context, platform bool, k admin.Keying) (access.Key, string, error)
	RotateKey(ctx context.Context, platform bool, r admin.Rotation) (access.Key, string, error)
	RevokeKey(ctx context.Context, platform bool, id, reason string) (access.Key, error)
	Key(ctx context.Context, platform bool, id string) (access.Key, error)
	Keys(ctx context.Context, platform bool, f access.KeyFilter) ([]access.Key, error)

	CreateTenant(ctx context.Context, t access.Tenant) (access.Tenant, error)
	SetTenant(ctx context.Context, name string, change func(*access.Tenant) error) (access.Tenant, error)
	ShowTenant(ctx context.Context, name string) (tenantJSON, error)
	Tenants(ctx context.Context, f access.TenantFilter) ([]access.Tenant, error)

	// DeleteTenant deletes the tenant for ever, or with preview only counts what that
	// would take away. The errors are those of [retention.DeleteTenant].
	DeleteTenant(ctx context.Context, name, reason string, preview bool) (retention.Deletion, error)
}

// upkeep is what keeps the installation in order, of every tenant.
type upkeep interface {
	// Fsck compares everything that is kept with the log; see [daemon.House.Fsck].
	Fsck(ctx context.Context, progress func(what string, done uint64), tell func(fsck.Finding)) (fsck.Report, error)

	// Rules returns how long what is kept stays.
	Rules(ctx context.Context) (retention.Rules, error)

	// Erase takes away what is over its time; with preview it only counts.
	Erase(ctx context.Context, f ruleFlags, preview bool) (retention.Erasure, error)
}

// at opens what the verb acts on, calls f and closes it: the server that the words,
// a variable or the configuration name; else the `tracon serve` that holds the data
// folder, through its socket; else the data folder itself. What f started is waited for.
func (a *app) at(cmd *cobra.Command, use daemon.Use, f func(ctx context.Context, b backend) error) error {
	return a.atHere(cmd, use, "", f)
}

// atSkill is at for words that name skills. A folder is always one of this machine:
// where a server is named, that is a word with a separator alone.
func (a *app) atSkill(cmd *cobra.Command, use daemon.Use, words []string, f func(ctx context.Context, b backend) error) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	return a.atHere(cmd, use, isHere(c, words), f)
}

// atFolder is atSkill for what needs neither store nor server where every word is a
// folder: a server that a variable or the configuration names, and no flag, is not asked
// for those.
func (a *app) atFolder(cmd *cobra.Command, use daemon.Use, words []string, f func(ctx context.Context, b backend) error) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	named := slices.ContainsFunc(words, func(word string) bool { return !strings.ContainsAny(word, `/\`) })
	if c.Server == "" || named || a.server != "" {
		return a.atSkill(cmd, use, words, f)
	}
	if err := gate.CheckTenant(a.tenant); err != nil {
		return err
	}
	return a.openHouse(cmd, use, c, func(ctx context.Context, h *daemon.House) error { return f(ctx, a.local(h)) })
}

// isHere says which of the words means a folder of this machine; empty: none.
func isHere(c *config.Config, words []string) (here string) {
	for _, word := range words {
		if strings.ContainsAny(word, `/\`) || c.Server == "" && daemon.IsFolder(word) {
			here = quoteWords(word) + " is a folder of this machine"
		}
	}
	return here
}

// ownEyes marks what looks at the data folder itself, also where a `tracon serve`
// holds it: what that one says of itself is not what is asked.
const ownEyes = "own eyes"

// atHere is at for words that mean this machine, for the reason here; empty: they do not.
func (a *app) atHere(cmd *cobra.Command, use daemon.Use, here string, f func(ctx context.Context, b backend) error) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	if err := gate.CheckTenant(a.tenant); err != nil {
		return err
	}
	a.tenantGiven = cmd.Flags().Changed("tenant")
	switch {
	case c.Server == "":
		if here == "" && a.actor == "" && cmd.Annotations[ownEyes] == "" {
			if r := a.beside(cmd.Context(), c); r != nil {
				return f(cmd.Context(), r)
			}
		}
		return a.openHouse(cmd, use, c, func(ctx context.Context, h *daemon.House) error { return f(ctx, a.local(h)) })
	case here != "":
		return hint(fmt.Errorf("%s; the server %s knows nothing of it", here, c.Server), "%s", notThere(here, c))
	case a.actor != "":
		return hint(errors.New("--actor is for the data folder: a server takes the name from the key"), "leave --actor away")
	}
	r, err := a.connect(cmd.Context(), c)
	if err != nil {
		return err
	}
	return f(cmd.Context(), r)
}

// notThere says what to do where words mean this machine, for the reason here, and a
// server is named.
func notThere(here string, c *config.Config) string {
	if strings.HasPrefix(here, "--") {
		return "leave it away, or " + withoutServer(c) + " for the data folder of this machine"
	}
	return "bring it there, such as with `tracon skill import`, and name it by its name; or " + withoutServer(c) + " for what is on this machine"
}

// withoutServer says how to name no server, by where its name comes from.
func withoutServer(c *config.Config) string {
	switch origin := c.Origin("server"); {
	case strings.HasPrefix(origin, "flag "):
		return "leave --server away"
	case strings.HasPrefix(origin, "variable "):
		return "unset TRACON_SERVER, or say --server=,"
	default:
		return "say --server=, against the setting `server` of " + origin + ","
	}
}

// refuseServer says that a verb works on this machine alone, and with away how to name no server.
func refuseServer(cmd *cobra.Command, server, away string) error {
	return hint(fmt.Errorf("`%s` works on this machine alone, and never on a server (%s)", cmd.CommandPath(), server),
		"call it on the machine that it is for, and %s", strings.TrimSuffix(away, ","))
}
