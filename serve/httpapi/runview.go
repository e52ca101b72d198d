package httpapi

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/toolcall"
)

// toRun is v as it is told, with the data of the files where data is true.
func toRun(v runs.View, data bool) client.Run {
	out := v.Outcome
	r := client.Run{ID: v.ID, Tenant: v.Tenant, Actor: v.Actor, Skill: v.Skill, Script: v.Script, State: string(v.Stage), Begun: v.Begun, Ended: v.Ended}
	if v.Stage != runs.Ended {
		return r
	}
	r.Code, r.Text, r.Ending = v.Code(), tracon.ModelText(out, v.Err), out.Ending.Name()
	if c, ok := errors.AsType[*tracon.Cancellation](v.Err); ok && r.Code == "cancelled" {
		r.CancelledBy = c.By
	}
	r.Abandoned, r.DurationSeconds, r.WaitedSeconds = out.Abandoned, out.Duration.Seconds(), out.Waited.Seconds()
	if out.Receipt.Valid() { // it was admitted, whatever came of it
		r.Digest, r.Grant, r.Executor, r.Tier = out.Digest.String(), out.GrantID, out.Standing.Executor, string(out.Standing.Tier)
		r.Audit = &client.Admitted{Index: out.Receipt.Index(), Hash: out.Receipt.Hash().String()}
		if !out.Proof.IsZero() {
			if text, err := out.Proof.MarshalText(); err == nil { // else it is one that none can read
				r.Audit.Receipt = string(text)
			}
		}
	}
	r.Notes = out.Notes
	if v.Err != nil { // there is no output, or none that was recorded
		r.Ending = r.Code
		return r
	}
	if n, ok := out.Ending.ExitCode(); ok {
		r.ExitCode = &n
	}
	if n, ok := out.Ending.Signal(); ok {
		r.Signal = &n
	}
	r.Truncated, r.Replaced = out.Truncated, out.Replaced
	stdout, stderr := out.Stdout, out.Stderr // of their own: else who reads them slowly would hold the files too
	r.Stdout, r.Stderr, r.StdoutBytes, r.StderrBytes = &stdout, &stderr, len(stdout), len(stderr)
	r.Stdout64, r.Stderr64 = out.StdoutBytes, out.StderrBytes
	r.OutputFiles = len(out.Outputs)
	for _, f := range out.Outputs {
		o := client.Output{Path: f.Path, Size: int64(len(f.Data))}
		if data {
			o.Data = f.Data
		}
		r.Outputs = append(r.Outputs, o)
		r.OutputBytes += o.Size
	}
	return r
}

// recordedRun is a run of which the record alone is kept.
func recordedRun(r toolcall.Record) client.Run {
	run := client.Run{
		ID: r.ID, Tenant: r.Tenant, Actor: r.Actor, Skill: r.Skill, Script: r.Script, State: client.RunEnded, Begun: r.Admitted, Ended: r.Ended,
		Ending: r.Ending, ExitCode: r.ExitCode, Signal: r.Signal, Abandoned: r.Abandoned, StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes,
		Truncated: r.Truncated, OutputFiles: r.OutputFiles, OutputBytes: r.OutputBytes, Notes: r.Notes, Digest: r.Digest.String(), Grant: r.Grant,
		Executor: r.Executor, Tier: r.Tier, Audit: &client.Admitted{Index: r.AdmissionIndex},
		DurationSeconds: r.Duration.Seconds(), WaitedSeconds: r.Waited.Seconds(),
	}
	if r.ExitCode == nil && r.Signal == nil {
		run.Code = r.Ending
	}
	run.Text = tracon.RecordText(r)
	return run
}

// settled is run with what its record says, once there is one: a caller is told
// "cancelled" before the executor has answered.
func (s *server) settled(ctx context.Context, run client.Run) client.Run {
	if run.Code != "cancelled" || run.Audit == nil {
		return run
	}
	r, err := s.Store.Call(ctx, run.Tenant, run.ID)
	if err != nil { // its ending is not written yet
		return run
	}
	return settledBy(run, r)
}

func settledBy(run client.Run, r toolcall.Record) client.Run {
	if run.Code != "cancelled" || run.Audit == nil || run.Audit.Index != r.AdmissionIndex {
		return run
	}
	told := recordedRun(r)
	told.CancelledBy, told.Audit = run.CancelledBy, run.Audit
	return told
}

// withoutOutput is r as a list has it.
func withoutOutput(r client.Run) client.Run {
	r.Stdout, r.Stderr, r.Stdout64, r.Stderr64, r.Outputs = nil, nil, nil, nil, nil
	return r
}

func toCall(r toolcall.Record) client.Call {
	return client.Call{
		ID: r.ID, Tenant: r.Tenant, Actor: r.Actor, Skill: r.Skill, Script: r.Script, Digest: r.Digest, ScriptDigest: r.ScriptDigest, Grant: r.Grant,
		Executor: r.Executor, Tier: r.Tier, ArgumentsBytes: r.ArgumentsBytes, ArgumentsDigest: r.ArgumentsDigest, Arguments: r.Arguments,
		Admitted: r.Admitted, Ended: r.Ended, Ending: r.Ending, ExitCode: r.ExitCode, Signal: r.Signal, Abandoned: r.Abandoned,
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, OutputFiles: r.OutputFiles, OutputBytes: r.OutputBytes, Truncated: r.Truncated,
		Notes: r.Notes, AdmissionIndex: r.AdmissionIndex, WaitedSeconds: r.Waited.Seconds(), DurationSeconds: r.Duration.Seconds(),
	}
}
