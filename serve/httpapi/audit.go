package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

func (s *server) auditRoutes() {
	either := may(access.ReadAudit, access.ReadPlatform)
	route(s, operation{id: "list-entries", method: http.MethodGet, path: "/v1/audit/entries", tag: "audit", summary: "The tenant's entries in the log, or the host's own for the platform, the oldest first",
		about: "A part may have fewer items than were asked for, and none, while next says that there are more.", need: may(access.ReadAudit, access.ReadHost)}, s.listEntries)
	route(s, operation{id: "get-receipt", method: http.MethodGet, path: "/v1/audit/entries/{index}/receipt", tag: "audit", summary: "What proves an entry to anybody", need: may(access.ReadAudit, access.ReadHost)}, s.getReceipt)
	route(s, operation{id: "check-receipt", method: http.MethodPost, path: "/v1/audit/receipts/check", tag: "audit", summary: "Whether a receipt holds, and the log goes on from it", maxBody: 2 << 20, need: either}, s.checkReceipt)
	route(s, operation{id: "checkpoint", method: http.MethodPost, path: "/v1/audit/checkpoint", tag: "audit", summary: "Sign the log as it is now", about: "Where nothing was written since the last checkpoint, that one is the answer.", need: either}, s.checkpoint)
	route(s, operation{id: "verify-log", method: http.MethodPost, path: "/v1/audit/verify", tag: "audit", summary: "Compute the whole log again, and compare it with what was signed", need: may(access.ReadPlatform)}, s.verifyLog)
	route(s, operation{id: "list-all-entries", method: http.MethodGet, path: "/v1/log/entries", tag: "audit", summary: "The entries of every tenant and of the host, the oldest first",
		about: "A part may have fewer items than were asked for, and none, while next says that there are more.", need: may(access.ReadEntries)}, s.listAllEntries)
	route(s, operation{id: "get-any-receipt", method: http.MethodGet, path: "/v1/log/entries/{index}/receipt", tag: "audit", summary: "What proves an entry of any tenant to anybody", need: may(access.ReadEntries)}, s.getAnyReceipt)
}

// whose is whose entries p reads: its tenant's, or the host's own.
func whose(p access.Principal) string {
	if p.Tenant == "" {
		return gate.HostTenant
	}
	return p.Tenant
}

// Entries are the parameters that choose entries.
type Entries struct {
	From    uint64    `query:"from" doc:"only from this index on"`
	Kinds   []string  `query:"kind" maxItems:"20" doc:"only of these kinds"`
	Run     string    `query:"run" maxLength:"64" doc:"only of this call"`
	Actor   string    `query:"actor" maxLength:"4096" doc:"only of what this actor did"`
	Subject string    `query:"subject" maxLength:"4096" doc:"only those whose subject begins so"`
	Since   time.Time `query:"since" timeFormat:"2006-01-02T15:04:05.999999999Z07:00"`
	Until   time.Time `query:"until" timeFormat:"2006-01-02T15:04:05.999999999Z07:00"`
	Leaf    bool      `query:"leaf" doc:"with the bytes that are hashed"`
}

func (f Entries) takes(e audit.Entry) bool {
	switch {
	case len(f.Kinds) > 0 && !slices.Contains(f.Kinds, string(e.Kind)):
	case f.Run != "" && e.Run != f.Run:
	case f.Actor != "" && e.Actor != f.Actor:
	case !strings.HasPrefix(e.Subject, f.Subject):
	case !f.Since.IsZero() && e.Time.Before(f.Since):
	case !f.Until.IsZero() && !e.Time.Before(f.Until):
	default:
		return true
	}
	return false
}

// entriesIn chooses a part of a list of entries.
type entriesIn struct {
	params.Paging
	Entries
}

func (s *server) listEntries(ctx context.Context, p access.Principal, in *entriesIn) (*answer[client.Page[client.Entry]], error) {
	return s.entries(ctx, params.ListOf(p.Tenant, "list-entries", in.words()...), whose(p), in)
}

func (s *server) listAllEntries(ctx context.Context, _ access.Principal, in *entriesIn) (*answer[client.Page[client.Entry]], error) {
	return s.entries(ctx, params.ListOf("", "list-all-entries", in.words()...), "", in)
}

// words are what tells one choice of entries from another.
func (f Entries) words() []string {
	return []string{strconv.FormatUint(f.From, 10), strings.Join(f.Kinds, ","), f.Run, f.Actor, f.Subject,
		f.Since.Format(time.RFC3339Nano), f.Until.Format(time.RFC3339Nano)}
}

// entries is a part of the list of the tenant's entries; of all, where it is empty.
func (s *server) entries(ctx context.Context, list, tenant string, in *entriesIn) (*answer[client.Page[client.Entry]], error) {
	f := in.Entries
	for _, k := range f.Kinds {
		if !slices.Contains(audit.Kinds(), audit.Kind(k)) {
			return nil, problem(client.Invalid, "there is no such kind of entry")
		}
	}
	from := f.From
	position, err := params.ReadCursor(list, in.Cursor)
	if err == nil && position != "" {
		if from, err = strconv.ParseUint(position, 10, 63); err != nil {
			err = problem(client.BadCursor, "the cursor is of another list, or none")
		}
	}
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Entry]{Items: []client.Entry{}}
	looked := 0
	for leaf, err := range s.Log.Entries(ctx, tenant, from) {
		if err != nil {
			return nil, err
		}
		if looked++; len(page.Items) == in.Limit || looked > maxScannedLeaves {
			page.Next = params.NewCursor(list, strconv.FormatUint(leaf.Index, 10))
			break
		}
		if f.takes(leaf.Entry) {
			page.Items = append(page.Items, toEntry(leaf, f.Leaf))
		}
	}
	return &answer[client.Page[client.Entry]]{page}, nil
}

func toEntry(l audit.Leaf, bytes bool) client.Entry {
	e := l.Entry
	out := client.Entry{Index: l.Index, Hash: l.Hash.String(), Seq: l.Seq, ID: e.ID, Time: e.Time, Tenant: e.Tenant, Actor: e.Actor,
		Kind: string(e.Kind), Subject: e.Subject, Run: e.Run, Count: e.Count, Facts: map[string]string{}}
	for _, f := range e.Facts {
		out.Facts[f.Name] = f.Value
	}
	if bytes {
		out.Leaf = l.Bytes
	}
	return out
}

// entryIn names an entry.
type entryIn struct {
	Index uint64 `path:"index" maximum:"9223372036854775807"`
}

func (s *server) getReceipt(ctx context.Context, p access.Principal, in *entryIn) (*answer[client.Receipt], error) {
	return s.receipt(ctx, in.Index, func(e audit.Entry) bool { return e.Tenant == whose(p) })
}

func (s *server) getAnyReceipt(ctx context.Context, _ access.Principal, in *entryIn) (*answer[client.Receipt], error) {
	return s.receipt(ctx, in.Index, func(audit.Entry) bool { return true })
}

func (s *server) receipt(ctx context.Context, index uint64, mayRead func(audit.Entry) bool) (*answer[client.Receipt], error) {
	if s.Notary == nil {
		return nil, errNotOffered()
	}
	// Whose it is comes first: an entry of another tenant is not signed for, nor told apart
	// from one that is not there.
	leaf, err := s.Log.Leaf(ctx, index)
	if err != nil {
		return nil, err
	}
	if !mayRead(leaf.Entry) {
		return nil, notFound()
	}
	proof, err := s.Notary.Prove(ctx, index)
	if err != nil {
		return nil, err
	}
	text, err := proof.MarshalText()
	if err != nil {
		return nil, err
	}
	return &answer[client.Receipt]{client.Receipt{Entry: toEntry(leaf, false), Receipt: string(text)}}, nil
}

// faults are what can be amiss with a log or a receipt, in the words of the command line.
var faults = []struct {
	err  error
	word string
}{
	{audit.ErrUnsigned, "unsigned"}, {audit.ErrRolledBack, "rolled back"}, {audit.ErrTruncated, "truncated"},
	{audit.ErrMissing, "missing"}, {audit.ErrBroken, "altered"}, {audit.ErrProof, "altered"},
}

func faultOf(err error) string {
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return f.word
		}
	}
	return ""
}

func (s *server) checkReceipt(ctx context.Context, p access.Principal, in *struct{ Body client.ReceiptCheck }) (*answer[client.ReceiptChecked], error) {
	if s.Notary == nil {
		return nil, errNotOffered()
	}
	keys, err := s.Notary.Keys()
	if err != nil {
		return nil, err
	}
	proof, err := audit.OpenProof([]byte(in.Body.Receipt), keys...)
	if err == nil {
		err = s.Notary.Fits(ctx, proof.Checkpoint)
	}
	out := client.ReceiptChecked{OK: err == nil, Fault: faultOf(err), Size: proof.Checkpoint.Tree.Size}
	if err != nil {
		if out.Fault == "" {
			return nil, err
		}
		return &answer[client.ReceiptChecked]{out}, nil
	}
	e, at, err := proof.Entry()
	if err != nil {
		return nil, err
	}
	if e.Tenant != whose(p) {
		return nil, notFound()
	}
	entry := toEntry(audit.Leaf{Index: proof.Index, Hash: audit.LeafHash(proof.Leaf), Seq: at.Seq, Entry: e}, false)
	out.Entry = &entry
	return &answer[client.ReceiptChecked]{out}, nil
}

func (s *server) checkpoint(ctx context.Context, _ access.Principal, _ *struct{}) (*answer[client.Checkpoint], error) {
	if s.Notary == nil {
		return nil, errNotOffered()
	}
	c, err := s.Notary.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := s.Notary.Keys()
	if err != nil {
		return nil, err
	}
	out := client.Checkpoint{Origin: c.Origin, Size: c.Tree.Size, Root: c.Tree.Root.String(), Note: string(c.Note), Keys: []string{}}
	for _, k := range keys {
		out.Keys = append(out.Keys, string(k))
	}
	return &answer[client.Checkpoint]{out}, nil
}

func (s *server) verifyLog(ctx context.Context, p access.Principal, _ *struct{}) (*answer[client.Verified], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := s.Host.VerifyLog(ctx)
	out := client.Verified{OK: err == nil, Fault: faultOf(err), Size: v.Tree.Size, Root: v.Tree.Root.String(), Signed: v.Signed, Checkpoints: v.Claims, Key: string(v.Key)}
	if err != nil && out.Fault == "" {
		return nil, err
	}
	if broken, ok := errors.AsType[*audit.BrokenError](err); ok {
		out.Index = &broken.Index
	}
	if err != nil {
		s.Logger.ErrorContext(ctx, "the log does not verify", "request", RequestID(ctx), "err", err)
	}
	return &answer[client.Verified]{out}, nil
}

// remembers keeps the error of what was read, to tell the client's from the host's.
type remembers struct {
	io.Reader
	err error
}

func (r *remembers) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
