package remote_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
)

// plainRunner is a runner of somebody else, who read R28 and nothing more.
func plainRunner(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Tenant, Runtime, Source, SourceSha256, StandardInput string
		TimeoutSeconds                                       float64
		MaxOutputBytes                                       int
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != "POST" || r.URL.Path != "/base/runs" || in.Runtime != "host-sh" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	if sum := sha256.Sum256([]byte(in.Source)); hex.EncodeToString(sum[:]) != strings.ToLower(in.SourceSha256) {
		http.Error(w, "another digest", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(in.TimeoutSeconds*float64(time.Second)))
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", in.Source)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in.StandardInput), &stdout, &stderr
	_ = cmd.Run()
	clip := func(b []byte) string { return string(b[:min(len(b), in.MaxOutputBytes)]) }
	code := any(cmd.ProcessState.ExitCode())
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	if late {
		code = nil
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ExitCode": code, "StandardOutput": clip(stdout.Bytes()), "StandardError": clip(stderr.Bytes()),
		"Truncated": stdout.Len() > in.MaxOutputBytes || stderr.Len() > in.MaxOutputBytes, "TimedOut": late})
}

// R28, R30: a runner that knows that wire alone serves our executor, for a script that is
// alone and reads standard input.
func TestPlainRunner(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(plainRunner))
	t.Cleanup(s.Close)
	e := open(t, s.URL+"/base/", nil)
	tests := []struct {
		name, script string
		timeout      time.Duration
		want         executor.Result
	}{
		{"exit code and streams", "cat; echo err >&2; exit 3\n", time.Minute, executor.Result{Ending: executor.Exited(3), Stdout: []byte(`{"a":"b"}`), Stderr: []byte("err\n")}},
		{"timeout", "echo so far; exec sleep 300\n", time.Second, executor.Result{Ending: executor.Expired(), Stdout: []byte("so far\n")}},
		{"too much output", "i=0; while [ $i -lt 600 ]; do echo 123456789; i=$((i+1)); done\n", time.Minute, executor.Result{Ending: executor.Exited(0), Stdout: []byte(strings.Repeat("123456789\n", 410)[:4096]), Truncated: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := e.Execute(t.Context(), admit(t, func(o *executortest.Order) {
				o.Files = []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main.sh", Data: []byte(tt.script)}}
				o.Policy.Timeout = tt.timeout
			}))
			if err != nil || res.Ending != tt.want.Ending || string(res.Stdout) != string(tt.want.Stdout) || string(res.Stderr) != string(tt.want.Stderr) || res.Truncated != tt.want.Truncated {
				t.Errorf("got %v, %+v", err, res)
			}
		})
	}
}
