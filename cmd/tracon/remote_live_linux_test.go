package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// O01, M06, case 55: what a script writes at a runner is seen by whoever follows the run at
// the control plane, while the script waits; behind it the run has all of it, and where
// the runner is killed meanwhile, what was seen is no result.
func TestRemoteIsFollowed(t *testing.T) {
	r := newRunner(t, nil)
	h := newServed(t, map[string]string{"TRACON_EXECUTOR": "remote", "TRACON_REMOTE": r.Address, "TRACON_REMOTE_REACH": "loopback"})
	h.env["TRACON_REMOTE_KEY_FILE"] = filepath.Join(h.folder, "runner.key")
	if err := os.WriteFile(h.env["TRACON_REMOTE_KEY_FILE"], []byte(r.one+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	c := h.setUpBy("runtime:sh", "acme", holding)
	end := func(id string) (shown string, run client.Run) {
		for e, err := range c.FollowRun(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			shown += e.Output.Text
			if e.Kind == client.EventEnd {
				run = e.Run
			}
		}
		return shown, run
	}
	id, letGo := h.hold(c)
	letGo()
	if shown, run := end(id); shown != "begun\nwent-on\n" || run.Stdout == nil || *run.Stdout != shown || run.ExitCode == nil || *run.ExitCode != 0 {
		t.Errorf("it showed %q, and came to %+v", shown, run)
	}
	id, _ = h.hold(c)
	r.kill()
	if shown, run := end(id); !strings.HasPrefix(shown, "begun\n") || run.Code != "unknown" || run.Stdout != nil && *run.Stdout != "" {
		t.Errorf("it showed %q, and came to %+v", shown, run)
	}
}
