package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/instance"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/store/postgres"
	"github.com/tracon-go/tracon/store/sqlite"
)

// DatabaseFile is the name of the database in the data folder.
const DatabaseFile = "tracon.db"

// A House is one installation, opened. Its methods are not safe for concurrent
// use; what it holds is.
type House struct {
	Config *config.Config
	Store  store.Store
	Where  string // the store is, for people: a file or a database
	Copied bool   // it may not be written and had writing beside it, so that a private copy of it is read
	Log    *audit.Log
	Hosts  gate.Hosts
	Gate   *gate.Gate
	Admin  *admin.Admin
	Notary *notary.Notary
	Images *image.Store
	Skills *skill.Library // those in folders

	// Contents is where the bytes of a name come from: a folder that was named by
	// itself (see [House.SkillName]), else what was imported for the tenant, else
	// the configuration's folders. The gates and Admin have the same.
	Contents gate.Contents

	// Observer is told of every call, where it is set before Start. Nil: nobody is.
	Observer tracon.Observer

	gone     bool // the database, of which checkpoints tell: see [Verify]
	answers  atomic.Pointer[[]notary.Answer]
	named    *named
	logger   *slog.Logger
	roots    bool               // the configuration's roots were added to Skills
	exec     Local              // nil until Start
	runner   *tracon.Runner     // nil until Start
	id       string             // of this process, in its admissions
	instance *instance.Instance // nil until Start
	host     *postgres.Host     // nil until Start, and where this is the only host
	signing  func()             // ends the signing by the clock; nil until Start
}

// Open opens the installation that c tells of, as [Make] says. The executor is not
// started: see [House.Start].
func Open(ctx context.Context, c *config.Config, logger *slog.Logger) (*House, error) {
	return OpenTo(ctx, Make, c, logger)
}

// OpenTo is Open for a use.
//
// # Errors
//
// ErrNone where there is nothing to read or to change.
func OpenTo(ctx context.Context, use Use, c *config.Config, logger *slog.Logger) (*House, error) {
	st, where, err := openStore(ctx, use, c)
	if err != nil {
		return nil, err
	}
	h := &House{Config: c, Store: st, Where: where, Log: audit.NewLog(st), Images: images(c), logger: logger, id: id.New()}
	if kept, ok := st.(*sqlite.Store); ok {
		h.Copied = kept.Copied()
	}
	if _, empty := st.(*memstore.Store); empty && use == Verify {
		h.gone = true
	}
	h.Hosts = hosts(c, st, h.Images)
	h.Skills = skill.NewLibrary(c.Content)
	h.named = &named{Library: h.Skills}
	h.Contents = contents(h.named, st, h.Skills)
	h.Gate = gate.New(gate.Config{
		Hosts: h.Hosts, Policies: st, Contents: h.Contents, Declarer: &skill.Declarations{},
		Schemas: schema.New(schema.Options{}), Grants: st, Log: h.Log, Instance: h.id,
	})
	if h.Notary, err = h.notary(use); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	h.Admin = admin.New(admin.Config{Store: st, Log: h.Log, Hosts: h.Hosts, Contents: h.Contents, Quota: c.Quota})
	return h, nil
}

// ID returns the id of this process, which stands in its admissions.
func (h *House) ID() string { return h.id }

// Start closes what dead processes left, starts the executor and returns the
// runner over it; a second call returns the same.
func (h *House) Start(ctx context.Context) (*tracon.Runner, error) {
	if h.runner != nil {
		return h.runner, nil
	}
	// A log that is not the one that was signed runs nothing.
	if err := h.Notary.Check(ctx); err != nil {
		return nil, err
	}
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	e, err := h.executor()
	if err != nil {
		return nil, err
	}
	c := h.Config
	h.runner, err = tracon.New(tracon.Config{
		Gate: h.Gate, Executor: e, Calls: h.Store, Receipts: h.Notary, Observer: h.Observer, Logger: h.logger, Pool: h.pool(),
		Slots: c.Slots, SlotsPerTenant: c.SlotsPerTenant, Queue: c.Queue, QueuePerTenant: c.QueuePerTenant,
		SlotWait: c.SlotWait, Grace: c.Grace,
	})
	if err == nil {
		h.signing = h.signByTheClock()
	}
	return h.runner, err
}

// executor starts the one that the configuration names. It is closed with the
// house.
func (h *House) executor() (e Local, err error) {
	if h.exec == nil {
		h.exec, err = openExecutor(h.Config, h.Config.Executor, knownRuntimes{h.runtimeNames, h.listedRuntimes}, h.logger)
	}
	return h.exec, err
}

// Ready says why nothing can run in this house, with the remedy, or nil. It
// writes nothing, and starts nothing: before [House.Start] it asks the log alone.
func (h *House) Ready(ctx context.Context) error {
	if h.runner != nil {
		return h.runner.Ready(ctx)
	}
	return h.Log.Ready(ctx)
}

// Posture returns which walls the executor puts around a script on this host.
func (h *House) Posture(ctx context.Context) (executor.Posture, error) {
	e, err := h.executor()
	if err != nil {
		return executor.Posture{}, err
	}
	return e.Posture(ctx)
}

// Tier returns the tier in force.
func (h *House) Tier(ctx context.Context) (grant.Tier, error) {
	p, err := h.Posture(ctx)
	return p.Tier, err
}

// Stop takes no more calls and waits for the end of those under way. When ctx
// is done first it stops them.
func (h *House) Stop(ctx context.Context) error {
	if h.runner == nil {
		return nil
	}
	return h.runner.Close(ctx)
}

// Close stops what was started, signs the log where this process has written to
// it, and closes the store.
func (h *House) Close(ctx context.Context) error {
	err := h.Stop(ctx)
	if h.exec != nil {
		err = errors.Join(err, h.exec.Close())
	}
	err = errors.Join(err, h.leave(ctx, err != nil))
	h.signLast(ctx)
	return errors.Join(err, h.Store.Close())
}

// IsFolder reports whether the word that names a skill is a folder: it has a
// separator, or a folder of that name is there.
func IsFolder(word string) bool {
	if strings.ContainsRune(word, '/') || strings.ContainsRune(word, filepath.Separator) {
		return true
	}
	info, err := os.Stat(word)
	return err == nil && info.IsDir()
}

// AddRoots scans the configuration's folders of skills, once. A folder that was
// named by itself comes before them, so it is the one that its name means.
func (h *House) AddRoots() error {
	if h.roots {
		return nil
	}
	h.roots = true
	for _, root := range h.Config.Skills {
		if err := h.Skills.AddRoot(root); err != nil {
			return err
		}
	}
	return nil
}

// SkillName returns the name of the skill that word means: a folder, which is
// added to the known ones, or the name of a known one. From then on the name of a
// folder's skill means that folder, whatever was imported under it.
func (h *House) SkillName(word string) (string, error) {
	if !IsFolder(word) {
		return word, h.AddRoots()
	}
	folder, err := filepath.Abs(word)
	if err != nil {
		return "", err
	}
	if err := h.Skills.AddFolder(folder); err != nil {
		return "", err
	}
	for _, s := range h.Skills.List() {
		if s.Folder == folder {
			h.named.add(s.Name)
			return s.Name, nil
		}
	}
	return "", fmt.Errorf("%w: the skill in %s", gate.ErrUnknown, folder)
}

// Declare returns how the script takes its arguments, as the skill says now. It
// is for reading words; the gates read again what they decide on.
func (h *House) Declare(ctx context.Context, tenant, name, script string) (gate.Declaration, error) {
	b, err := h.Read(ctx, tenant, name)
	if err != nil {
		return gate.Declaration{}, err
	}
	if _, _, ok := b.Text(script); !ok {
		return gate.Declaration{}, fmt.Errorf("%w: script %q", gate.ErrUnknown, script)
	}
	return new(skill.Declarations).Declare(b, script)
}

// Read reads every file of the tenant's skill as it is now.
func (h *House) Read(ctx context.Context, tenant, name string) (bundle.Bundle, error) {
	return h.Contents.Read(ctx, tenant, name, h.Config.Content)
}
