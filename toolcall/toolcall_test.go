package toolcall_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/toolcall"
)

// decisions.md, "Bytes": camelCase members, durations in seconds, sizes in bytes.
func TestRecordJSON(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	code := 3
	r := toolcall.Record{
		ID: "id", Tenant: "t", Actor: "a", Skill: "s", Script: "x.py", Digest: bundle.Sum([]byte("1")), ScriptDigest: bundle.Sum([]byte("2")),
		Grant: "g", Executor: "process", Tier: "process", ArgumentsBytes: 2, ArgumentsDigest: bundle.Sum([]byte("{}")), ArgumentsSalt: []byte("salt-salt"),
		Admitted: at, Ended: at.Add(1500 * time.Millisecond), Waited: 250 * time.Millisecond, Duration: 1250 * time.Millisecond,
		Ending: "exited", ExitCode: &code, StdoutBytes: 5, AdmissionIndex: 7,
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": "id", "tenant": "t", "actor": "a", "skill": "s", "script": "x.py",
		"digest": r.Digest.String(), "scriptDigest": r.ScriptDigest.String(), "grant": "g", "executor": "process", "tier": "process",
		"argumentsBytes": 2.0, "argumentsDigest": r.ArgumentsDigest.String(), "admitted": "2026-11-29T12:00:00Z", "ended": "2026-11-29T12:00:01.5Z",
		"waitedSeconds": 0.25, "durationSeconds": 1.25, "ending": "exited", "exitCode": 3.0, "signal": nil,
		"stdoutBytes": 5.0, "stderrBytes": 0.0, "outputFiles": 0.0, "outputBytes": 0.0, "truncated": false, "admissionIndex": 7.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The salt with which arguments could be guessed from the log, and arguments
// that the policy does not keep, never leave with a record.
func TestRecordHidesTheSalt(t *testing.T) {
	r := toolcall.Record{ArgumentsSalt: []byte("\x01\x02\x03\x04salt")}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Contains(strings.ToLower(s), "salt") || strings.Contains(s, "AQIDB") || strings.Contains(s, `"arguments"`) {
		t.Errorf("the JSON of a record has %s", s)
	}
}

// "None" and "zero" are told apart: a script that timed out has no exit code,
// one that ended well has zero.
func TestRecordWithoutExitCode(t *testing.T) {
	zero := 0
	for want, r := range map[string]toolcall.Record{
		`"exitCode":null,"signal":null`: {Ending: "timed_out"},
		`"exitCode":0,"signal":null`:    {Ending: "exited", ExitCode: &zero},
	} {
		text, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %s, %v; want %s in it", text, err, want)
		}
	}
}
