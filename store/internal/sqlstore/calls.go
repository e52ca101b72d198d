package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/store/internal/keep"
	"github.com/tracon-go/tracon/toolcall"
)

// A callRest is what of a record has no column. Its JSON is for this package
// alone; that of toolcall.Record is for people, and leaves things out.
type callRest struct {
	Actor           string        `json:"actor,omitempty"`
	Script          string        `json:"script,omitempty"`
	ScriptDigest    bundle.Digest `json:"scriptDigest"`
	Grant           string        `json:"grant,omitempty"`
	Executor        string        `json:"executor,omitempty"`
	Tier            string        `json:"tier,omitempty"`
	ArgumentsBytes  int           `json:"argumentsBytes,omitempty"`
	ArgumentsDigest bundle.Digest `json:"argumentsDigest"`
	ArgumentsSalt   []byte        `json:"argumentsSalt,omitempty"`
	Arguments       string        `json:"arguments,omitempty"`
	Admitted        int64         `json:"admitted"` // microseconds since 1970, as the next
	Ended           int64         `json:"ended"`
	Waited          int64         `json:"waited,omitempty"` // nanoseconds, as the next
	Duration        int64         `json:"duration,omitempty"`
	Ending          string        `json:"ending,omitempty"`
	ExitCode        *int          `json:"exitCode,omitempty"`
	Signal          *int          `json:"signal,omitempty"`
	Abandoned       bool          `json:"abandoned,omitempty"`
	StdoutBytes     int           `json:"stdoutBytes,omitempty"`
	StderrBytes     int           `json:"stderrBytes,omitempty"`
	OutputFiles     int           `json:"outputFiles,omitempty"`
	OutputBytes     int64         `json:"outputBytes,omitempty"`
	Truncated       bool          `json:"truncated,omitempty"`
	Notes           []string      `json:"notes,omitempty"`
	AdmissionIndex  uint64        `json:"admissionIndex,omitempty"`
}

func restOf(r toolcall.Record) callRest {
	return callRest{
		Actor: r.Actor, Script: r.Script, ScriptDigest: r.ScriptDigest, Grant: r.Grant, Executor: r.Executor, Tier: r.Tier,
		ArgumentsBytes: r.ArgumentsBytes, ArgumentsDigest: r.ArgumentsDigest, ArgumentsSalt: r.ArgumentsSalt, Arguments: r.Arguments,
		Admitted: r.Admitted.UnixMicro(), Ended: r.Ended.UnixMicro(), Waited: int64(r.Waited), Duration: int64(r.Duration),
		Ending: r.Ending, ExitCode: r.ExitCode, Signal: r.Signal, Abandoned: r.Abandoned, StdoutBytes: r.StdoutBytes,
		StderrBytes: r.StderrBytes, OutputFiles: r.OutputFiles, OutputBytes: r.OutputBytes, Truncated: r.Truncated, Notes: r.Notes,
		AdmissionIndex: r.AdmissionIndex,
	}
}

func (c callRest) record(tenant, id, skill string, digest bundle.Digest) toolcall.Record {
	return toolcall.Record{
		ID: id, Tenant: tenant, Skill: skill, Digest: digest,
		Actor: c.Actor, Script: c.Script, ScriptDigest: c.ScriptDigest, Grant: c.Grant, Executor: c.Executor, Tier: c.Tier,
		ArgumentsBytes: c.ArgumentsBytes, ArgumentsDigest: c.ArgumentsDigest, ArgumentsSalt: c.ArgumentsSalt, Arguments: c.Arguments,
		Admitted: time.UnixMicro(c.Admitted).UTC(), Ended: time.UnixMicro(c.Ended).UTC(), Waited: time.Duration(c.Waited),
		Duration: time.Duration(c.Duration), Ending: c.Ending, ExitCode: c.ExitCode, Signal: c.Signal, Abandoned: c.Abandoned,
		StdoutBytes: c.StdoutBytes, StderrBytes: c.StderrBytes, OutputFiles: c.OutputFiles, OutputBytes: c.OutputBytes,
		Truncated: c.Truncated, Notes: c.Notes, AdmissionIndex: c.AdmissionIndex,
	}
}

func scanCall(row scanner, tenant string) (toolcall.Record, error) {
	var id, skill string
	var digest, text []byte
	if err := row.Scan(&id, &skill, &digest, &text); err != nil {
		return toolcall.Record{}, err
	}
	var rest callRest
	text, err := withoutSum(text, tenant, id, skill, digest)
	if err == nil {
		err = decode(text, &rest)
	}
	if err != nil {
		return toolcall.Record{}, damaged("the record of call %s: %w", id, err)
	}
	if len(digest) != len(bundle.Digest{}) {
		return toolcall.Record{}, damaged("the record of call %s has a digest of %d bytes", id, len(digest))
	}
	return rest.record(tenant, id, skill, bundle.Digest(digest)), nil
}

// AddCall implements [toolcall.Store].
func (s *Store) AddCall(ctx context.Context, r toolcall.Record, ending audit.Pending) error {
	r, err := keep.Call(r, ending)
	if err != nil {
		return err
	}
	text, err := json.Marshal(restOf(r))
	if err != nil {
		return fmt.Errorf("store: the record of call %s: %w", r.ID, err)
	}
	return s.commit(ctx, ending, func(ctx context.Context, w *writer) error {
		n, err := affected(w.do[addCall].ExecContext(ctx, r.Tenant, r.ID, r.Skill, r.Digest[:], withSum(text, r.Tenant, r.ID, r.Skill, r.Digest[:])))
		if err == nil && n == 0 {
			err = refused{fmt.Errorf("%w: %s", toolcall.ErrExists, r.ID)}
		}
		if err != nil {
			return err
		}
		return w.count(ctx, r)
	})
}

// Call implements [toolcall.Store].
func (s *Store) Call(ctx context.Context, tenant, id string) (r toolcall.Record, err error) {
	err = s.reads(ctx, "the record of a call", func() (err error) {
		r, err = scanCall(s.read[call].QueryRowContext(ctx, tenant, id), tenant)
		if errors.Is(err, sql.ErrNoRows) {
			err = refused{fmt.Errorf("%w: %s", toolcall.ErrNotFound, id)}
		}
		return err
	})
	return r, err
}

// behindAll stands behind every id: no text begins with this character, which
// is none.
const behindAll = "\U0010FFFF"

// Calls implements [toolcall.Store].
func (s *Store) Calls(ctx context.Context, tenant string, f toolcall.Filter) ([]toolcall.Record, error) {
	limit, err := keep.Limit(f.Limit, toolcall.DefaultLimit)
	if err != nil {
		return nil, err
	}
	if f.Before == "" {
		f.Before = behindAll
	}
	scan := func(row scanner) (toolcall.Record, error) { return scanCall(row, tenant) }
	if f.Skill == "" {
		return list(ctx, s, "the records of calls", scan, calls, tenant, f.Before, limit)
	}
	return list(ctx, s, "the records of calls", scan, callsOfSkill, tenant, f.Skill, f.Before, limit)
}
