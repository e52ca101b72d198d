// Command embed is a whole host: it grants one script of an example skill to a
// tenant and runs it. Run it from the root of the repository:
//
//	go run ./examples/embed
//
// With an address it is an application with a server of its own, which has Tracon's
// API below /scripts/ for those who are logged in to the application; see site.go:
//
//	go run ./examples/embed -listen 127.0.0.1:8080
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/store/memstore"
)

func main() {
	listen := flag.String("listen", "", "address to serve at; empty: run the script once")
	flag.Parse()
	ctx := context.Background()
	h, err := open(ctx, "examples/skills", nil)
	check(err)
	defer h.runner.Close(ctx)
	if *listen == "" {
		out, err := h.convert(ctx)
		check(err)
		fmt.Print(out)
		return
	}
	site, err := newSite(h, people)
	check(err)
	server := &http.Server{Addr: *listen, Handler: site, ReadHeaderTimeout: 5 * time.Second} // see serve/limit for more
	check(server.ListenAndServe())
}

// A host is everything that a call goes through.
type host struct {
	store  *memstore.Store // store/sqlite keeps it in a file
	log    *audit.Log
	skills *skill.Library
	gates  *gate.Gate
	runner *tracon.Runner
	desk   *admin.Admin
}

// open makes a host with the skills of a folder. The executor nil means the default.
func open(ctx context.Context, folder string, e executor.Executor) (*host, error) {
	python, err := interpreter.Find(ctx, "py")
	if err != nil {
		return nil, err
	}
	hosts := gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{"py": python.Interpreter()}}
	h := &host{store: memstore.New(), skills: skill.NewLibrary(bundle.Limits{})}
	h.log = audit.NewLog(h.store)
	if err := h.skills.AddRoot(folder); err != nil {
		return nil, err
	}
	h.gates = gate.New(gate.Config{Hosts: hosts, Policies: h.store, Contents: h.skills, Declarer: new(skill.Declarations),
		Schemas: schema.New(schema.Options{}), Grants: h.store, Log: h.log})
	h.desk = admin.New(admin.Config{Store: h.store, Log: h.log, Hosts: hosts, Contents: h.skills})
	if h.runner, err = tracon.New(tracon.Config{Gate: h.gates, Executor: e, Calls: h.store}); err != nil {
		return nil, err
	}
	return h, h.allow(ctx)
}

// allow is what an operator does, once: switch the tenant on, review, grant what was
// reviewed.
func (h *host) allow(ctx context.Context) error {
	_, err := h.desk.SetPolicy(ctx, "operator", "acme", func(p *gate.Policy) error {
		p.Enabled, p.Interpreters = true, []string{"py"}
		return nil
	})
	if err != nil {
		return err
	}
	ref := grant.Ref{Tenant: "acme", Skill: "unit-converter", Script: "scripts/convert.py"}
	review, err := h.desk.Review(ctx, ref)
	if err != nil {
		return err
	}
	_, err = h.desk.Grant(ctx, admin.Granting{Actor: "operator", Ref: ref, Digest: review.Content.Digest(), MinTier: grant.Process})
	return err
}

// convert is what the host does for a model, again and again.
func (h *host) convert(ctx context.Context) (string, error) {
	out, err := h.runner.Run(ctx, gate.Call{Tenant: "acme", Actor: "agent", Skill: "unit-converter", Script: "scripts/convert.py",
		Arguments: json.RawMessage(`{"value":26.2,"factor":1.60934}`)})
	if text := tracon.ModelText(out, err); text != "" {
		return "", fmt.Errorf("%s (%w)", text, err)
	}
	return out.Stdout, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
