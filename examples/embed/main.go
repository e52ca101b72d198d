// Command embed is a whole host: it grants one script of an example skill to a
// tenant and runs it. Run it from the root of the repository:
//
//	go run ./examples/embed
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/store/memstore"
)

func main() {
	ctx := context.Background()
	python, err := interpreter.Find(ctx, "py")
	check(err)
	host := gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{"py": python.Interpreter()}}
	store := memstore.New() // store/sqlite keeps it in a file
	record := audit.NewLog(store)
	skills := skill.NewLibrary(bundle.Limits{})
	check(skills.AddRoot("examples/skills"))
	gates := gate.New(gate.Config{Hosts: host, Policies: store, Contents: skills, Declarer: new(skill.Declarations),
		Schemas: schema.New(schema.Options{}), Grants: store, Log: record})
	runner, err := tracon.New(tracon.Config{Gate: gates, Calls: store})
	check(err)
	defer runner.Close(ctx)

	// What an operator does, once: switch the tenant on, review, grant what was reviewed.
	desk := admin.New(admin.Config{Store: store, Log: record, Hosts: host, Contents: skills})
	_, err = desk.SetPolicy(ctx, "operator", "acme", func(p *gate.Policy) error {
		p.Enabled, p.Interpreters = true, []string{"py"}
		return nil
	})
	check(err)
	ref := grant.Ref{Tenant: "acme", Skill: "unit-converter", Script: "scripts/convert.py"}
	review, err := desk.Review(ctx, ref)
	check(err)
	_, err = desk.Grant(ctx, admin.Granting{Actor: "operator", Ref: ref, Digest: review.Content.Digest(), MinTier: grant.Process})
	check(err)

	// What the host does for a model, again and again.
	out, err := runner.Run(ctx, gate.Call{Tenant: "acme", Actor: "agent", Skill: ref.Skill, Script: ref.Script,
		Arguments: json.RawMessage(`{"value":26.2,"factor":1.60934}`)})
	if text := tracon.ModelText(out, err); text != "" {
		log.Fatal(text, " (", err, ")")
	}
	fmt.Print(out.Stdout)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
