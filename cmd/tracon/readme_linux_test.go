package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The README's path of a new operator, as it stands there, and on: start, key, import,
// review, grant, run, change, refusal, difference, another grant, verify.
func TestReadmeOperatorsPath(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)\n## For many tenants[^\n]*\n\n((?:    [^\n]*\n)+)`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the README has no such block")
	}
	block := string(m[1])
	if n := strings.Count(block, "\n"); n >= 10 {
		t.Errorf("it has %d lines, want fewer than ten", n)
	}
	// An address of this machine that nobody else takes.
	b := make([]byte, 3)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.%d.%d.%d:8787", 1+b[0]%250, b[1], 1+b[2]%250)
	if !strings.Contains(block, "http://127.0.0.1:8787") {
		t.Error("it does not name the address")
	}
	block = strings.ReplaceAll(block, "127.0.0.1:8787", address)

	s := newServed(t, nil) // for its folder and its environment
	delete(s.env, "TRACON_DATA")
	delete(s.env, "TRACON_EXECUTOR")
	s.env["TRACON_LISTEN"] = address
	if err := os.CopyFS(filepath.Join(s.folder, "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(s.folder, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "tracon")); err != nil {
		t.Fatal(err)
	}
	s.env["PATH"] = bin + ":" + s.env["PATH"]
	run := "tracon run unit-converter scripts/convert.py -- --value 26.2 --factor 1.60934"
	if !strings.Contains(block, run) {
		t.Error("it runs nothing")
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*patience)
	defer stop()
	c := exec.CommandContext(ctx, "/bin/bash", "-c", "trap 'kill %1; wait' EXIT\n"+block+`
`+run+`; echo "then $?"
tracon grant diff unit-converter scripts/convert.py
eval "$(tracon grant review unit-converter scripts/convert.py | tail -n 1)"
`+run+`; echo "at last $?"
TRACON_KEY=$(cat ~/.local/share/tracon/first.key) tracon audit verify; echo "verified $?"
kill %1; wait %1; echo "ended $?"; trap - EXIT
`)
	for k, v := range s.env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.Dir = s.folder
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(syscall.SIGTERM) }, patience
	out, err := c.CombinedOutput()
	rest := string(out)
	for _, want := range []string{"never granted", "granted unit-converter", `"result": 42.1647`, "refused by gate pin", "then 126", "changed SKILL.md",
		"granted unit-converter", `"result": 42.1647`, "at last 0", "verified 0", "ended 0"} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			log, _ := os.ReadFile(filepath.Join(s.folder, "serve.log"))
			t.Fatalf("%v; after what came before there is no %q in:\n%s\nthe server's log:\n%s", err, want, out, log)
		}
		rest = after
	}
}
