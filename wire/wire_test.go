package wire_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/wire"
)

var sum = strings.Repeat("aB", 32)

func plain(changes ...string) string {
	s := `{"tenant":"acme","runtime":"python-3.12","source":"pass","sourceSha256":"` + sum + `","standardInput":"in","timeoutSeconds":1.5,"maxOutputBytes":10}`
	return strings.NewReplacer(changes...).Replace(s)
}

func full() wire.Run {
	return wire.Run{Tenant: "acme", Runtime: "python-3.12", SourceSHA256: sum, TimeoutSeconds: 0.25, MaxOutputBytes: 10, More: &wire.More{
		ID: "i", Actor: "a", Grant: "g", Skill: "s", Script: "x.py", Extension: "py", Mode: "argv", Bundle: "sha256:" + strings.ToLower(sum),
		Files: []wire.File{{Path: "x.py", Data: []byte("\xff")}}, Declaration: []byte("d"), Words: []string{"<&>"}, StandardInput64: []byte("\x00\xff"),
		Inputs: []wire.File{{Path: "i"}}, OutputPatterns: []string{"*"}, MaxOutputsBytes: 1, MaxOutputFiles: 2, Memory: 3, Processes: 4, Network: "none",
		Environment: []wire.Variable{{Name: "TENANT", Value: "v"}}, Tier: "sandbox", RequireWalls: []string{"memory"}, Ticket: "t",
	}}
}

// R28: what is a run, in whatever case, and what is none.
func TestReadRun(t *testing.T) {
	more := func(text string) string { return plain(`"tenant"`, `"tracon":`+text+`,"tenant"`) }
	whole := `{"id":"i","skill":"s","script":"x","mode":"argv","bundle":"sha256:` + strings.ToLower(sum) + `"}`
	tests := []struct {
		name, text string
		want       error
	}{
		{"camelCase", plain(), nil},
		{"PascalCase", plain("tenant", "Tenant", "runtime", "Runtime", "sourceSha256", "SourceSha256", "standardInput", "StandardInput"), nil},
		{"unknown members", plain(`"tenant"`, `"later":[{"a":1}],"tenant"`), nil},
		{"more", more(whole), nil},
		{"more, in another case", plain(`"tenant"`, `"TRACON":`+strings.Replace(whole, `"id"`, `"ID"`, 1)+`,"tenant"`), nil},
		{"no standard input", plain(`"standardInput":"in",`, ``), nil},
		{"a member twice", plain(`"tenant"`, `"TENANT":"b","tenant"`), wire.ErrMalformed},
		{"no tenant", plain(`"acme"`, `""`), wire.ErrMalformed},
		{"a tenant too long", plain("acme", strings.Repeat("a", wire.MaxName+1)), wire.ErrMalformed},
		{"a path as runtime", plain("python-3.12", "/bin/sh"), wire.ErrMalformed},
		{"a short digest", plain(sum, sum[2:]), wire.ErrMalformed},
		{"a digest that is not hex", plain(sum, strings.Repeat("zz", 32)), wire.ErrMalformed},
		{"no source", plain(`"pass"`, `""`), wire.ErrMalformed},
		{"no timeout", plain("1.5", "0"), wire.ErrMalformed},
		{"a negative timeout", plain("1.5", "-1"), wire.ErrMalformed},
		{"a timeout of days", plain("1.5", "86401"), wire.ErrMalformed},
		{"a timeout as text", plain("1.5", `"1.5"`), wire.ErrMalformed},
		{"no limit of output", plain(":10}", ":0}"), wire.ErrMalformed},
		{"a limit with a fraction", plain(":10}", ":10.5}"), wire.ErrMalformed},
		{"more without an id", more(strings.Replace(whole, `"i"`, `""`, 1)), wire.ErrMalformed},
		{"more without a bundle", more(strings.Replace(whole, "sha256:", "", 1)), wire.ErrMalformed},
		{"a negative number", more(strings.Replace(whole, "{", `{"memory":-1,`, 1)), wire.ErrMalformed},
		{"standard input twice", more(strings.Replace(whole, "{", `{"standardInput64":"AA==",`, 1)), wire.ErrMalformed},
		{"a variable twice", more(strings.Replace(whole, "{", `{"environment":[{"name":"A","value":""},{"name":"A","value":"1"}],`, 1)), wire.ErrMalformed},
		{"a declaration without files", more(strings.Replace(whole, "{", `{"declaration":"AA==",`, 1)), wire.ErrMalformed},
		{"base64 that is none", more(strings.Replace(whole, "{", `{"standardInput64":"*",`, 1)), wire.ErrMalformed},
		{"too large", plain() + strings.Repeat(" ", 3000), wire.ErrTooLarge},
		{"nothing", "", wire.ErrMalformed},
		{"a list", "[]", wire.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run, err := wire.ReadRun(strings.NewReader(tt.text), 3000)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			if err == nil && (run.Tenant != "acme" || run.Source != "pass" || run.Timeout() != 1500*time.Millisecond) {
				t.Errorf("got %+v", run)
			}
		})
	}
}

// A run comes out as it went in, with names that folding could have changed; and what
// a ticket is signed over is the same at both ends, whatever the ticket.
func TestRunTravels(t *testing.T) {
	in := full()
	b, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	out, err := wire.ReadRun(bytes.NewReader(b), 0)
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Fatalf("got %+v (%+v), %v", out, out.More, err)
	}
	before, err := in.Commitment()
	if err != nil {
		t.Fatal(err)
	}
	out.More.Ticket = "another"
	if after, err := out.Commitment(); err != nil || after != before || in.More.Ticket != "t" {
		t.Errorf("M11: the commitment differs, or the ticket was touched: %v", err)
	}
	out.More.Words[0] = "x"
	if after, err := out.Commitment(); err != nil || after == before {
		t.Errorf("M11: another run has the same commitment: %v", err)
	}
	closure, there, err := out.More.Closure(bundle.Limits{})
	if err != nil || !there || string(closure.Declaration()) != "d" {
		t.Errorf("the closure: %t, %v", there, err)
	}
	if string(out.Stdin()) != "\x00\xff" {
		t.Errorf("standard input is %q", out.Stdin())
	}
	in.More.Words = []string{"\xff"}
	if _, err := in.Encode(); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a word that is not UTF-8 is sent: %v", err)
	}
}

// R28, R29: what is an answer, and what is none.
func TestReadAnswer(t *testing.T) {
	const rest = `"standardOutput":"o","standardError":"e","truncated":false`
	more := func(ending string) string {
		return `{"exitCode":1,` + rest + `,"timedOut":false,"tracon":{"id":"i","bundle":"b","ending":` + ending + `}}`
	}
	tests := []struct {
		name, text string
		want       error
	}{
		{"camelCase", `{"exitCode":1,` + rest + `,"timedOut":false}`, nil},
		{"PascalCase", `{"ExitCode":1,"StandardOutput":"o","StandardError":"e"}`, nil},
		{"timed out", `{"exitCode":null,` + rest + `,"timedOut":true}`, nil},
		{"both", `{"exitCode":0,` + rest + `,"timedOut":true}`, nil},
		{"more", more(`{"kind":"exited","code":1}`), nil},
		{"neither", `{` + rest + `}`, wire.ErrMalformed},
		{"no output", `{"exitCode":1,"standardError":""}`, wire.ErrMalformed},
		{"an empty object", `{}`, wire.ErrMalformed},
		{"empty", ``, wire.ErrMalformed},
		{"null", `null`, wire.ErrMalformed},
		{"a page", `<html>`, wire.ErrMalformed},
		{"a member twice", `{"exitCode":1,"EXITCODE":0,` + rest + `}`, wire.ErrMalformed},
		{"an exit code as text", `{"exitCode":"1",` + rest + `}`, wire.ErrMalformed},
		{"an ending of another code", more(`{"kind":"exited","code":2}`), wire.ErrMalformed},
		{"an ending that timed out", more(`{"kind":"timed_out"}`), wire.ErrMalformed},
		{"M01: a signal", more(`{"kind":"signaled","signal":64}`), nil},
		{"M01: a signal that a shell's code cannot tell", more(`{"kind":"signaled","signal":128}`), wire.ErrMalformed},
		{"M01: a signal above the last", more(`{"kind":"signaled","signal":65}`), wire.ErrMalformed},
		{"M01: no signal", more(`{"kind":"signaled"}`), wire.ErrMalformed},
		{"M01: a signal below zero", more(`{"kind":"signaled","signal":-9}`), wire.ErrMalformed},
		{"the exit code of a crash on Windows", `{"exitCode":3221225477,` + rest + `}`, nil},
		{"the same with a sign", `{"exitCode":-1073741819,` + rest + `}`, nil},
		{"M01: an exit code of 33 bits", `{"exitCode":4294967296,` + rest + `}`, wire.ErrMalformed},
		{"M01: one below 32 bits", `{"exitCode":-2147483649,` + rest + `}`, wire.ErrMalformed},
		{"an ending that is none", more(`{"kind":"well"}`), wire.ErrMalformed},
		{"too large", `{"exitCode":1,` + rest + `}` + strings.Repeat(" ", 3000), wire.ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := wire.ReadAnswer(strings.NewReader(tt.text), 3000)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			if err == nil && (a.ExitCode == nil) != a.TimedOut {
				t.Errorf("R28: an exit code beside timed out: %+v", a)
			}
		})
	}
}

// R28: whatever is read as a run is written and read again as the same.
func FuzzReadRun(f *testing.F) {
	f.Add([]byte(plain()))
	b, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"TENANT":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		run, err := wire.ReadRun(bytes.NewReader(b), 1<<20)
		if err != nil {
			return
		}
		again, err := run.Encode()
		if err != nil {
			t.Fatalf("it was read, and cannot be written: %v", err)
		}
		back, err := wire.ReadRun(bytes.NewReader(again), 0)
		if err != nil {
			t.Fatal(err)
		}
		one, err1 := run.Commitment()
		two, err2 := back.Commitment()
		if err1 != nil || err2 != nil || one != two {
			t.Errorf("it comes back as another: %v, %v", err1, err2)
		}
	})
}

// R29: no answer, closure, problem or info brings its reader down, and what is read of
// an answer holds.
func FuzzReadOthers(f *testing.F) {
	f.Add([]byte(`{"exitCode":1,"standardOutput":"","standardError":"","tracon":{"ending":{"kind":"exited","code":1}}}`))
	f.Add([]byte(`{"files":[{"path":"a","data":"AA=="}],"code":"busy","protocols":["tracon/1"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := wire.ReadAnswer(bytes.NewReader(b), 1<<20); err == nil {
			if err := a.Check(); err != nil {
				t.Error(err)
			}
			a.Streams()
		}
		if c, err := wire.ReadClosure(bytes.NewReader(b), 1<<20); err == nil {
			if made, err := c.Bundle(bundle.Limits{}); err == nil && made.IsZero() {
				t.Error("a closure of nothing")
			}
		}
		if p, err := wire.ReadProblem(bytes.NewReader(b)); err == nil && p.Code == "" {
			t.Error("a problem without a code")
		}
		if i, err := wire.ReadInfo(bytes.NewReader(b)); err == nil {
			i.Knows()
		}
	})
}
