package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// newWithin starts a control plane whose NATS server is within it, and the runner r1, which
// has joined when this returns.
func newWithin(t *testing.T) *aFleet {
	t.Helper()
	f := &aFleet{folder: t.TempDir(), runners: map[string]*served{}}
	f.served = newServed(t, map[string]string{"TRACON_FLEET_LISTEN": "127.0.0.1:0", "TRACON_FLEET_TIER": "process", "TRACON_TRUST_CLAIMED": "true",
		"TRACON_FLEET_TICKET_KEY": f.file("ticket.pem"), "TRACON_FLEET_LOST": "1m"})
	ticketKeys(t, f.folder)
	f.env["TRACON_FLEET_MEMBERS"], f.env["TRACON_FLEET_HOSTS"] = "main/r1 "+f.joinKey("r1"), "main "+f.joinKey("operator")
	f.startAs("serve", "--fleet", "--json")
	var joined struct{ Address string }
	if err := json.Unmarshal([]byte(f.said("runners may join")), &joined); err != nil {
		t.Fatal(err)
	}
	f.env["TRACON_FLEET_URLS"], f.env["TRACON_FLEET_SEED_FILE"] = "nats://"+joined.Address, f.file("operator.seed") // an operator's, from here on
	f.join("r1")
	f.await("the runner is there", idle(1))
	return f
}

// O01, R24, B3: what a script writes at a runner of a fleet is seen by whoever follows the
// run while the script goes on; it would go on for an hour, so that nothing but what was
// seen ends it: the cancellation reaches the runner, the script's process is gone, both
// logs say cancelled, and its place is free. A completion knows the runner meanwhile.
func TestFleetIsFollowed(t *testing.T) {
	t.Parallel() // it waits for processes
	f := newWithin(t)
	eventually(t, "a completion has the runner's name", func() bool { // one that takes too long says nothing
		out := f.operator("__complete", "runner", "drain", "")
		return strings.HasPrefix(out, "r1\tready in pool main, 0 of 4 places taken\n:4\n")
	})
	c := f.setUpBy("runtime:sh", "acme", "echo begun $$; exec sleep 3617\n")
	started, err := c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage("[]")}, client.RunOptions{Detach: true})
	if err != nil {
		t.Fatal(err)
	}
	shown, process := "", ""
	var run client.Run
	for e, err := range c.FollowRun(t.Context(), started.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		shown += e.Output.Text
		if m := regexp.MustCompile(`^begun (\d+)\n$`).FindStringSubmatch(shown); m != nil && process == "" {
			process = m[1]
			eventually(t, "when its first words are seen it goes on", func() bool { // while it becomes sleep it has no command line
				return strings.Contains(commandLine(t, process), "3617")
			})
			if _, err := c.CancelRun(t.Context(), started.ID); err != nil {
				t.Fatal(err)
			}
		}
		if e.Kind == client.EventEnd {
			run = e.Run
		}
	}
	if process == "" || run.State != client.RunEnded || run.Code != "cancelled" || run.ExitCode != nil {
		t.Errorf("it showed %q, and came to %+v", shown, run)
	}
	f.await("its place is free", idle(1))
	if text := commandLine(t, process); strings.Contains(text, "3617") {
		t.Errorf("B3: the script's process is there yet: %q", text)
	}
	// Who cancelled has its answer at once; what is kept comes when the script is gone.
	eventually(t, "the record says cancelled", func() bool { return ending(t, c, started.ID) == "cancelled" })
	for name, s := range map[string]*served{"control plane": f.served, "runner": f.runners["r1"]} {
		eventually(t, "R24: the log of the "+name+" says cancelled", func() bool {
			out, err := s.command("audit", "list", "--all-tenants", "--kind", "ending", "--json").Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return strings.Count(string(out), `"ending": "cancelled"`) == 1
		})
	}
}

// commandLine returns that of a process; one that has ended has none.
func commandLine(t *testing.T, process string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + process + "/cmdline")
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
		t.Error(err)
	}
	return string(text)
}
