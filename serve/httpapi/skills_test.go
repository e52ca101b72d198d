package httpapi

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/turns"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

func zipped(t testing.TB, files []bundle.File) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		part, err := w.Create(f.Path)
		if err == nil {
			_, err = part.Write(f.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// One skill, sent as an archive and as files, has one digest and is kept once; what is
// exported imports with the same digest; every version stays (case 48, B11).
func TestSkills(t *testing.T) {
	h := newHouse(t)
	var first, second, again client.Imported
	h.ask("operator", "POST", "/v1/imports/zip?reason=first&source=/home/me/x.zip", zipped(t, files(script))).into(201, &first)
	var list []client.Upload
	for _, f := range files(script) {
		list = append(list, client.Upload{Path: f.Path, Data: f.Data})
	}
	h.ask("operator", "POST", "/v1/imports/files", client.FilesImport{Files: list}).into(201, &again)
	if again.Version.ID != first.Version.ID || first.Files != 2 || first.Version.Source != "" {
		t.Errorf("first %+v, again %+v", first, again)
	}
	h.ask("operator", "POST", "/v1/imports/zip", zipped(t, files(script+"# more\n"))).into(201, &second)

	var s client.Skill
	r := h.ask("reader", "GET", "/v1/skills/greeter?content=true", nil).into(200, &s)
	if s.Digest != second.Version.Digest || len(s.Files) != 2 || *s.Files[1].Text != script+"# more\n" || len(s.Scripts) != 1 || s.Scripts[0].Mode != "argv" || s.Description != "Says hello." {
		t.Errorf("the skill is %s", r.body)
	}
	var old client.Skill
	h.ask("reader", "GET", "/v1/skills/greeter?version="+first.Version.ID, nil).into(200, &old)
	if old.Digest != first.Version.Digest || old.Files[1].Text != nil {
		t.Errorf("the old one is %+v", old)
	}
	h.ask("reader", "GET", "/v1/skills/greeter?version=zzzz", nil).problem(client.NotFound)
	h.ask("reader", "GET", "/v1/skills/greeter?version=z", nil).problem(client.Invalid)

	var d client.VersionDifference
	h.ask("reader", "GET", "/v1/skills/greeter/diff", nil).into(200, &d)
	if len(d.Changes) != 1 || d.Changes[0].Path != "scripts/hello.py" || !strings.Contains(d.Changes[0].Difference, "+# more") || d.Old.ID != first.Version.ID {
		t.Errorf("the difference is %+v", d)
	}
	file := h.ask("reader", "GET", "/v1/skills/greeter/file?path=scripts/hello.py", nil)
	if string(file.body) != script+"# more\n" || file.header.Get("Content-Disposition") != "attachment" || file.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("the file: %q, %v", file.body, file.header)
	}
	for _, path := range []string{"scripts/none.py", "SCRIPTS/hello.py", "../SKILL.md", "/etc/passwd", "scripts"} {
		h.ask("reader", "GET", "/v1/skills/greeter/file?path="+url.QueryEscape(path), nil).problem(client.NotFound)
	}

	exported := h.ask("reader", "GET", "/v1/skills/greeter/export?version="+first.Version.ID, nil)
	var back client.Imported
	h.ask("other", "POST", "/v1/imports/zip", exported.body).into(201, &back)
	if back.Version.Digest != first.Version.Digest || back.Version.Tenant != "globex" {
		t.Errorf("imported again: %+v", back)
	}

	one := "/v1/skills/greeter"
	h.ask("operator", "DELETE", one, nil).problem(client.PreconditionRequired)
	h.ask("operator", "DELETE", one, nil, "If-Match", `"00"`).problem(client.PreconditionFailed)
	var gone client.Version
	h.ask("operator", "DELETE", one+"?reason=over", nil, "If-Match", r.header.Get("ETag")).into(200, &gone)
	if !gone.Deleted || gone.Reason != "over" {
		t.Errorf("deleted %+v", gone)
	}
	h.ask("reader", "GET", one, nil).problem(client.NotFound)
	h.ask("operator", "DELETE", one, nil, "If-Match", "*").problem(client.NotFound)
	var page client.Page[client.Version]
	var got []string
	for next, part := "", 0; part == 0 || next != ""; part++ {
		page = client.Page[client.Version]{}
		h.ask("reader", "GET", one+"/history?limit=1&cursor="+next, nil).into(200, &page)
		for _, v := range page.Items {
			got = append(got, fmt.Sprint(v.Digest.Hex()[:4], v.Deleted))
		}
		next = page.Next
	}
	want := []string{fmt.Sprint("0000", true), fmt.Sprint(second.Version.Digest.Hex()[:4], false), fmt.Sprint(first.Version.Digest.Hex()[:4], false)}
	if !slices.Equal(got, want) {
		t.Errorf("the history is %v, want %v", got, want)
	}
	h.ask("reader", "GET", one+"?version="+first.Version.ID, nil).into(200, nil)
	h.ask("reader", "GET", "/v1/skills/nobody/history", nil).problem(client.NotFound)
}

// A list of skills goes on by name, each once.
func TestSkillsInParts(t *testing.T) {
	h := newHouse(t)
	for _, name := range []string{"a", "b", "zz"} {
		h.importNamed("acme", name, script)
	}
	var got []string
	for next, part := "", 0; part == 0 || next != ""; part++ {
		var page client.Page[client.SkillSummary]
		h.ask("reader", "GET", "/v1/skills?limit=3&cursor="+next, nil).into(200, &page)
		for _, s := range page.Items {
			got = append(got, s.Name)
		}
		next = page.Next
	}
	if want := []string{"a", "b", "greeter", "zz"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A stored script is a skill of its own.
func TestStoredScript(t *testing.T) {
	h := newHouse(t)
	one := client.ScriptImport{Skill: "totals", Script: "total.py", Data: []byte("print(1)\n"), Schema: json.RawMessage(`{"type":"object"}`)}
	var made client.Imported
	h.ask("operator", "POST", "/v1/imports/script", one).into(201, &made)
	var s client.Skill
	h.ask("reader", "GET", "/v1/skills/totals", nil).into(200, &s)
	if !made.Version.Stored || s.Digest != made.Version.Digest || len(s.Scripts) != 1 || s.Scripts[0].Mode != "stdin" {
		t.Errorf("%+v", s)
	}
	h.ask("reader", "GET", "/v1/skills/totals/export", nil).problem(client.BadContent)
	for _, name := range []string{"a/b.py", "../b.py", "SKILL.md", ".."} {
		one.Script = name
		h.ask("operator", "POST", "/v1/imports/script", one).problem(client.BadContent)
	}
	one.Script, one.Schema = "a.py", json.RawMessage(`{"type":"no such type"}`)
	h.ask("operator", "POST", "/v1/imports/script", one).problem(client.BadContent)
}

// An archive that is refused says why, in words about nothing but what was sent; and
// nothing of an upload is left, whatever comes of it (B-cases of archives, W06).
func TestImportRefused(t *testing.T) {
	spool := t.TempDir()
	h := newHouse(t, func(c *Config) { c.Spool = spool })
	list := files(script)
	for _, tt := range []struct {
		name string
		body []byte
		code client.Code
		says string
	}{
		{"not an archive", []byte("canary"), client.BadContent, ""},
		{"nothing", []byte{}, client.BadContent, ""},
		{"it leaves the folder", zipped(t, append(list, bundle.File{Path: "../x"})), client.BadContent, ".."},
		{"twins", zipped(t, append(list, bundle.File{Path: "skill.md"})), client.BadContent, "SKILL.md"},
		{"no SKILL.md", zipped(t, list[1:]), client.BadContent, "SKILL.md"},
		{"a broken SKILL.md", zipped(t, []bundle.File{{Path: "SKILL.md", Data: []byte("no frontmatter")}}), client.BadContent, "SKILL.md"},
		{"too large", make([]byte, maxZip+1), client.TooLarge, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := *h
			h.T = t
			p := h.ask("operator", "POST", "/v1/imports/zip", tt.body).problem(tt.code)
			if !strings.Contains(p.Error(), tt.says) || strings.Contains(p.Error(), spool) {
				t.Errorf("it says %q", p.Error())
			}
		})
	}
	h.ask("operator", "POST", "/v1/imports/zip", `{}`).problem(client.UnsupportedMediaType)
	left, err := os.ReadDir(spool)
	h.must(err)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	var page client.Page[client.SkillSummary]
	h.ask("reader", "GET", "/v1/skills", nil).into(200, &page)
	if len(page.Items) != 1 {
		t.Errorf("kept: %+v", page.Items)
	}
}

// One tenant that uploads without end is told that it is busy, and another is not; what
// is small and known whole is taken in besides, an archive is not: whoever announces
// little may send it for as long as whoever announces much (B10).
func TestUploads(t *testing.T) {
	h := newHouse(t)
	zip, large := zipped(t, files(script)), make([]byte, DefaultMaxBody+1)
	var leave []func()
	for range uploadsPerTenant {
		done, err := h.inside.uploads.enter("acme")
		h.must(err)
		leave = append(leave, done)
	}
	r := h.ask("operator", "POST", "/v1/imports/zip", large)
	if r.problem(client.Busy); r.header.Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
	h.ask("other", "POST", "/v1/imports/zip", large).problem(client.BadContent)
	h.ask("operator", "POST", "/v1/imports/zip", zip).problem(client.Busy)
	h.ask("operator", "POST", "/v1/imports/script", client.ScriptImport{Skill: "small", Script: "a.py", Mode: "stdin", Data: []byte("pass\n")}).into(201, nil)
	for _, done := range leave {
		done()
	}
	h.ask("operator", "POST", "/v1/imports/zip", zip).into(201, nil)
	h.ask("operator", "POST", "/v1/imports/zip", large).problem(client.BadContent)
	if u := &h.inside.uploads; len(u.tenant) != 0 || u.all != 0 {
		t.Errorf("left: %v, %d", u.tenant, u.all)
	}
}

// Who waits for a turn longer than anybody should is told that it is busy; who is gone
// takes none.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{turns: turns.New(heavyAtOnce)}
		for range heavyAtOnce / 2 {
			if _, err := s.heavy(t.Context(), "acme"); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if _, err := s.heavy(t.Context(), "acme"); !errors.Is(err, client.Busy) || time.Since(began) != heavyWait {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		done, err := s.heavy(t.Context(), "globex")
		if err != nil {
			t.Fatal(err)
		}
		done()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := s.heavy(ctx, "acme"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// What the gates say of the host is not told to a tenant: not its programs, not its
// walls, not its folders (B8, and nothing host-internal in what a tenant sees).
func TestExplain(t *testing.T) {
	h := newHouse(t)
	ask := client.Explain{Skill: "greeter", Script: "scripts/hello.py"}
	var e client.Explained
	h.ask("reader", "POST", "/v1/explain", ask).into(200, &e)
	if e.Admitted || len(e.Gates) != len(gate.Names()) {
		t.Errorf("without a grant: %+v", e)
	}
	h.grant("acme")
	e = client.Explained{}
	r := h.ask("reader", "POST", "/v1/explain", ask).into(200, &e)
	if !e.Admitted {
		t.Errorf("with a grant: %+v", e)
	}
	if strings.Contains(string(r.body), "python-3.12") || strings.Contains(string(r.body), "httpapi.echo") {
		t.Errorf("the host is told: %s", r.body)
	}
	_, err := h.admin.SetHost(t.Context(), "test", func(s *gate.Host) error { s.Interpreters = nil; s.RequireWalls = []string{"network"}; return nil })
	h.must(err)
	e = client.Explained{}
	h.ask("reader", "POST", "/v1/explain", ask).into(200, &e)
	for _, v := range e.Gates {
		if (v.Gate == "interpreter" || v.Gate == "tier") && (v.Answer != "no" || v.Remedy == "" || strings.Contains(v.Detail, "network")) {
			t.Errorf("%+v", v)
		}
	}
}

// A review has what a reviewer needs, and its digest is what a grant of it names.
func TestReview(t *testing.T) {
	h := newHouse(t)
	h.grant("acme")
	digest := h.importSkill("acme", "import subprocess\n")
	var r client.Review
	h.ask("approver", "GET", "/v1/review?skill=greeter&script=scripts/hello.py&content=true", nil).into(200, &r)
	if r.Digest != digest || r.Granted == nil || len(r.Changes) != 1 || len(r.Risks) == 0 || *r.Files[1].Text != "import subprocess\n" {
		t.Errorf("%+v", r)
	}
	var d client.Difference
	h.ask("reader", "GET", "/v1/difference?skill=greeter&script=scripts/hello.py", nil).into(200, &d)
	if len(d.Changes) != 1 || d.Granted.ID != r.Granted.ID {
		t.Errorf("%+v", d)
	}
	h.ask("reader", "GET", "/v1/difference?skill=greeter&allScripts=true", nil).problem(client.NotFound)
	h.ask("reader", "GET", "/v1/review?skill=greeter", nil).problem(client.Invalid)
	h.ask("reader", "GET", "/v1/review?skill=greeter&script=a&allScripts=true", nil).problem(client.Invalid)
	h.ask("reader", "GET", "/v1/review?skill=greeter&script=none", nil).problem(client.NotFound)
}

// Whatever an archive holds, the answer is a problem or an import, never a fault of ours.
func FuzzImportZip(f *testing.F) {
	f.Add(zipped(f, files(script)))
	f.Add(zipped(f, []bundle.File{{Path: "../x", Data: []byte("x")}}))
	f.Add([]byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		h := newHouse(t)
		switch r := h.ask("operator", "POST", "/v1/imports/zip", archive); r.status {
		case 201:
		case 422:
			r.problem(client.BadContent)
		default:
			t.Errorf("%d: %s", r.status, r.body)
		}
	})
}
