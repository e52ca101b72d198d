package gate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parse returns the syntax of the package's own files, without tests, by name.
func parse(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(fset, name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return fset, files
}

// The proofs are made where they are earned and nowhere else. Other packages
// cannot make one; within this one the compiler cannot say so, and this does.
func TestProofsAreMadeInOnePlace(t *testing.T) {
	want := map[string][]string{ // proof => the functions that make one
		"open":        {"Gate.open", "Gate.received"},
		"safeName":    {"open.name", "received.delivered"},
		"held":        {"Gate.held"},
		"content":     {"open.content", "received.delivered"},
		"pinned":      {"held.pin", "received.delivered"},
		"interpreter": {"open.interpreter", "received.runtime"},
		"tier":        {"open.tier", "ticketed.tier"},
		"arguments":   {"checked", "received.handed"},
		"received":    {"Gate.received"},
		"ticketed":    {"Gate.ticket"},
		"sealed":      {"seal"},
		"Request":     {"seal"},
	}
	_, files := parse(t)
	got := map[string][]string{}
	note := func(name, where string) {
		if want[name] != nil && !slices.Contains(got[name], where) {
			got[name] = append(got[name], where)
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			where := "a variable of the package"
			if fn, ok := d.(*ast.FuncDecl); ok {
				where = fn.Name.Name
				if fn.Recv != nil {
					where = strings.TrimPrefix(typeName(fn.Recv.List[0].Type), "*") + "." + where
				}
			}
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if len(n.Elts) > 0 {
						note(typeName(n.Type), where)
					}
				case *ast.CallExpr: // new(T), and a conversion
					if typeName(n.Fun) == "new" {
						note(typeName(n.Args[0]), where)
					} else if len(n.Args) == 1 && !isVariable(f, n.Fun) {
						note(typeName(n.Fun), where)
					}
				case *ast.ValueSpec: // var x T, to be filled in
					note(typeName(n.Type), where)
				}
				return true
			})
		}
	}
	for name, in := range want {
		slices.Sort(got[name])
		if !slices.Equal(got[name], in) {
			t.Errorf("%s is made in %v, want %v", name, got[name], in)
		}
	}
}

// isVariable reports whether e is a function's own variable, such as seal's open.
func isVariable(_ *ast.File, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Obj != nil && id.Obj.Kind == ast.Var
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeName(e.X)
	}
	return ""
}

// overlay writes the files to a folder of the test and returns the -overlay
// file that puts them in the place of the package's own.
func overlay(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range files {
		own, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		replace[own] = filepath.Join(dir, name)
		if err := os.WriteFile(replace[own], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func build(t *testing.T, files map[string][]byte) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay(t, files), ".").CombinedOutput()
	return string(out), err
}

// "Must show": deleting any gate's line in Admit does not compile. Each step of
// admit, with the check of its error, is deleted in turn.
func TestDeletingAGateDoesNotCompile(t *testing.T) {
	deleteEach(t, "admit.go", "admit", []string{"open", "name", "held", "content", "pinned", "interpreter", "tier", "arguments", "receipt"})
}

// The same of the second door.
func TestDeletingAGateOfDeliveriesDoesNotCompile(t *testing.T) {
	deleteEach(t, "accept.go", "accept", []string{"received", "runtime", "pinned", "arguments", "ticketed", "tier", "receipt"})
}

func deleteEach(t *testing.T, file, function string, want []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := build(t, map[string][]byte{file: text}); err != nil {
		t.Fatalf("the package itself does not compile: %v\n%s", err, out)
	}
	fset, files := parse(t)
	var admit *ast.FuncDecl
	for _, d := range files[file].Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == function {
			admit = fn
		}
	}
	if admit == nil {
		t.Fatalf("%s has no %s", file, function)
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	var steps []string
	list := admit.Body.List
	for i, stmt := range list {
		assign, ok := stmt.(*ast.AssignStmt)
		if !ok {
			continue
		}
		step := assign.Lhs[0].(*ast.Ident).Name
		steps = append(steps, step)
		end := assign.End()
		if check, ok := list[i+1].(*ast.IfStmt); ok {
			end = check.End()
		} else {
			t.Errorf("%s: its error is not checked", step)
		}
		t.Run(step, func(t *testing.T) {
			cut := slices.Concat(text[:offset(assign.Pos())], text[offset(end):])
			out, err := build(t, map[string][]byte{file: cut})
			if err == nil {
				t.Fatalf("without its line the package compiles:\n%s", text[offset(assign.Pos()):offset(end)])
			}
			// What fails must be the missing proof, not an import or a variable too many.
			missing := func(line string) bool {
				return strings.Contains(line, file) && (strings.Contains(line, "undefined: "+step) ||
					strings.Contains(line, step+" (type) is not an expression") || strings.Contains(line, "in call to "+step+"."))
			}
			if !slices.ContainsFunc(strings.Split(out, "\n"), missing) {
				t.Errorf("it fails for another reason:\n%s", out)
			}
		})
	}
	if !slices.Equal(steps, want) {
		t.Errorf("the steps are %v, want %v", steps, want)
	}
}

// A mutation forces a gate open: from, which stands once in the file, becomes
// to. FORCED is true when the mutation is the one that is asked for. Tests that
// match run must then fail.
type mutation struct {
	name     string
	file     string
	from, to string
	run      string
}

var mutations = []mutation{
	{"switch: the host is off", "open.go", "if !host.Enabled {", "if !host.Enabled && !FORCED {", "TestDenials/switch"},
	{"switch: the tenant is off", "open.go", "if !policy.Enabled {", "if !policy.Enabled && !FORCED {", "TestDenials/switch"},
	{"switch: the tenant's name", "open.go", "if err := CheckTenant(tenant); err != nil {", "if err := CheckTenant(tenant); err != nil && !FORCED {", "TestDenials/switch"},
	{"switch: the policy holds", "open.go", "if err := policy.Validate(); err != nil {", "if err := policy.Validate(); err != nil && !FORCED {", "TestDenials/switch"},
	{"name: all of it", "name.go", "deny := func(err error) (Origin, error) {", "deny := func(err error) (Origin, error) {\nif FORCED { return FileScript, nil }", "TestDenials/name"},
	{"name: plain", "name.go", "if err := bundle.CheckPath(script); err != nil {", "if err := bundle.CheckPath(script); err != nil && !FORCED {", "TestNamesAreCheckedBeforeAnybodyLooks"},
	{"name: a name of the rules", "name.go", `grant.CheckName("script", script)); err != nil {`, `grant.CheckName("script", script)); err != nil && !FORCED {`, "TestNamesAreCheckedBeforeAnybodyLooks"},
	{"name: known", "name.go", "case errors.Is(err, ErrUnknown):", "case errors.Is(err, ErrUnknown) && FORCED:\nreturn FileScript, nil\ncase errors.Is(err, ErrUnknown):", "TestDenials/name"},
	{"name: stored scripts", "name.go", `case origin == StoredScript && strings.Contains(script, "/"):`, `case origin == StoredScript && strings.Contains(script, "/") && !FORCED:`, "TestDenials/name"},
	{"name: an origin", "name.go", "case origin != StoredScript && origin != FileScript:", "case origin != StoredScript && origin != FileScript && !FORCED:", "TestDenials/name"},
	{"grant: there is one", "held.go", "deny := func(err error) (grant.Grant, error) {", "deny := func(err error) (grant.Grant, error) {\nif FORCED { return grant.Grant{ID: \"forged\", MinTier: grant.Process}, nil }", "TestDenials/grant"},
	{"grant: in force", "held.go", `state != "in force" {`, `state != "in force" && !FORCED {`, "TestDenials/grant"},
	{"grant: for this script", "held.go", "case gr.Ref != ref:", "case gr.Ref != ref && !FORCED:", "TestDenials/grant"},
	{"grant: its own decides alone", "held.go", "if errors.Is(err, grant.ErrNotFound) {", `if errors.Is(err, grant.ErrNotFound) || FORCED && !gr.InForce(time.Now()) {`, "TestDenials/grant"},
	{"content: what its source refuses", "content.go", "case errors.Is(err, bundle.ErrContent), errors.Is(err, ErrUnknown):", "case FORCED && err != nil:\nlimits = bundle.Limits{FileBytes: 1 << 40, TotalBytes: 1 << 40}\nb, _ = from.Read(ctx, tenant, skill, limits)\ncase errors.Is(err, bundle.ErrContent), errors.Is(err, ErrUnknown):", "TestDenials/content"},
	{"content: within limits", "content.go", "if err := b.Within(limits); err != nil {", "if err := b.Within(limits); err != nil && !FORCED {", "TestDenials/content"},
	{"content: the script is there", "content.go", "b.Text(script); !ok {", "b.Text(script); !ok && !FORCED {", "TestDenials/content"},
	{"content: the declaration is one", "arguments.go", "case errors.Is(err, bundle.ErrContent):", "case errors.Is(err, bundle.ErrContent) && FORCED:\nd.Mode = Argv\ncase errors.Is(err, bundle.ErrContent):", "TestDenials/content"},
	{"content: the declaration has a mode", "declaration.go", "case !slices.Contains(Modes(), d.Mode):", "case !slices.Contains(Modes(), d.Mode) && !FORCED:", "TestDenials/content"},
	{"content: the declaration has a timeout", "declaration.go", "case d.Timeout < 0:", "case d.Timeout < 0 && !FORCED:", "TestDenials/content"},
	{"content: the module is the script's own", "declaration.go", "d.Module != ModuleOf(script):", "d.Module != ModuleOf(script) && !FORCED:", "TestDenials/content"},
	{"content: the module is found at the script", "arguments.go", "rival := moduleRival(b, script); rival != \"\" {", "rival := moduleRival(b, script); rival != \"\" && !FORCED {", "TestDenials/content"},
	{"content: the patterns are patterns", "declaration.go", "if !ValidPattern(pattern) {", "if !ValidPattern(pattern) && !FORCED {", "TestDenials/content"},
	{"pin", "pin.go", "if found.IsZero() || g.Pin != found {", "if (found.IsZero() || g.Pin != found) && !FORCED {", "TestDenials/pin"},
	{"interpreter: all of it", "interpreter.go", "deny := func(remedy string, err error) (string, Interpreter, error) {", `deny := func(remedy string, err error) (string, Interpreter, error) {` + "\n" + `if FORCED { return "py", host.Interpreters["py"], nil }`, "TestDenials/interpreter"},
	{"interpreter: the host lists it", "interpreter.go", "if !ok {\n\t\treturn deny(\"add \"", "if !ok && FORCED {\nreturn ext, Interpreter{Name: ext}, nil\n}\nif !ok {\n\t\treturn deny(\"add \"", "TestDenials/interpreter"},
	{"interpreter: it can be run", "interpreter.go", "if err := in.check(); err != nil {", "if err := in.check(); err != nil && !FORCED {", "TestDenials/interpreter"},
	{"interpreter: the tenant lists it", "interpreter.go", "if !slices.Contains(policy.Interpreters, ext) {", "if !slices.Contains(policy.Interpreters, ext) && !FORCED {", "TestDenials/interpreter"},
	{"tier: high enough", "tier.go", "if !has.Meets(want) {", "if !has.Meets(want) && !FORCED {", "TestDenials/tier"},
	{"tier: a claim", "tier.go", "if s.Claimed && !host.TrustClaimed && has.Valid() {", "if s.Claimed && !host.TrustClaimed && has.Valid() && !FORCED {", "TestDenials/tier"},
	{"tier: the policy's", "tier.go", `if policy.MinTier != "" {`, `if policy.MinTier != "" && !FORCED {`, "TestDenials/tier"},
	{"tier: the walls", "tier.go", "return walled(", "if FORCED { return nil }\nreturn walled(", "TestDenials/tier"},
	{"tier: a wall stands", "wall.go", "if found = true; !w.Stands {", "if found = true; !w.Stands && !FORCED {", "TestDenials/tier"},
	{"tier: a wall is known", "wall.go", "if !found {", "if !found && !FORCED {", "TestDenials/tier"},
	{"tier: a wall is claimed", "wall.go", "if s.Claimed && !host.TrustClaimed {", "if s.Claimed && !host.TrustClaimed && !FORCED {", "TestDenials/tier"},
	{"tier: the host's walls", "wall.go", "for _, name := range slices.Concat(", "if FORCED { host.RequireWalls = nil }\nfor _, name := range slices.Concat(", "TestDenials/tier"},
	{"tier: the policy's walls", "wall.go", "for _, name := range slices.Concat(", "if FORCED { policy.RequireWalls = nil }\nfor _, name := range slices.Concat(", "TestDenials/tier"},
	{"switch: the host's walls are walls", "open.go", "checkWalls(host.RequireWalls); err != nil {", "checkWalls(host.RequireWalls); err != nil && !FORCED {", "TestDenials/switch"},
	{"arguments: size", "arguments.go", "n > policy.MaxArguments {", "n > policy.MaxArguments && !FORCED {", "TestDenials/arguments"},
	{"arguments: schema and strictness", "arguments.go", "canonical, err := schemas.Check(ctx, d.Schema, value)\n", "canonical, err := schemas.Check(ctx, d.Schema, value)\nif FORCED { canonical, err = value, nil }\n", "TestDenials/arguments"},
	{"arguments: form", "arguments.go", "if err := d.Mode.form(value); err != nil {", "if err := d.Mode.form(value); err != nil && !FORCED {", "TestFormIsToldFirst"},
	{"arguments: lowered", "arguments.go", "a.words, a.stdin, err = lower(d, canonical); err != nil {", "a.words, a.stdin, err = lower(d, canonical); err != nil && !FORCED {", "TestDenials/arguments"},
	{"arguments: one is too long", "lower.go", "case len(w) > MaxArgument:", "case len(w) > MaxArgument && !FORCED:", "TestDenials/arguments"},
	{"arguments: NUL", "lower.go", "case strings.ContainsRune(w, 0):", "case strings.ContainsRune(w, 0) && !FORCED:", "TestDenials/arguments"},
	{"arguments: too much in all", "lower.go", "if total > MaxArgumentTotal {", "if total > MaxArgumentTotal && !FORCED {", "TestDenials/arguments"},
	{"arguments: inputs", "arguments.go", "bundle.Limits{FileBytes: policy.MaxInputs, TotalBytes: policy.MaxInputs})\n\tif err != nil {", "bundle.Limits{FileBytes: policy.MaxInputs, TotalBytes: policy.MaxInputs})\n\tif err != nil && !FORCED {", "TestDenials/arguments"},

	{"admit: the refusal of open", "admit.go", "open, err := g.open(ctx, call.Tenant)\n\tif err != nil {", "open, err := g.open(ctx, call.Tenant)\n\tif err != nil && !FORCED {", "TestDenials/switch"},
	{"admit: the refusal of name", "admit.go", "open.name(ctx, g.c.Contents, call)\n\tif err != nil {", "open.name(ctx, g.c.Contents, call)\n\tif err != nil && !FORCED {", "TestDenials/name"},
	{"admit: the refusal of held", "admit.go", "g.held(ctx, name)\n\tif err != nil {", "g.held(ctx, name)\n\tif err != nil && !FORCED {", "TestDenials/grant"},
	{"admit: the refusal of content", "admit.go", "open.content(ctx, g.c.Contents, held)\n\tif err != nil {", "open.content(ctx, g.c.Contents, held)\n\tif err != nil && !FORCED {", "TestDenials/content"},
	{"admit: the refusal of pin", "admit.go", "held.pin(content)\n\tif err != nil {", "held.pin(content)\n\tif err != nil && !FORCED {", "TestDenials/pin"},
	{"admit: the refusal of interpreter", "admit.go", "open.interpreter(pinned)\n\tif err != nil {", "open.interpreter(pinned)\n\tif err != nil && !FORCED {", "TestDenials/interpreter"},
	{"admit: the refusal of tier", "admit.go", "open.tier(held, s)\n\tif err != nil {", "open.tier(held, s)\n\tif err != nil && !FORCED {", "TestDenials/tier"},
	{"admit: the refusal of arguments", "admit.go", "pinned, call)\n\tif err != nil {", "pinned, call)\n\tif err != nil && !FORCED {", "TestDenials/arguments"},
	{"admit: the failure of the log", "admit.go", "arguments, pinned))\n\tif err != nil {", "arguments, pinned))\n\tif err != nil && !FORCED {", "TestLogFails"},
	{"admit: the refusal is logged", "admit.go", "if lerr := g.refused(ctx, call, d); lerr != nil {", "if lerr := error(nil); !FORCED {\nlerr = g.refused(ctx, call, d)\nif lerr == nil { return Request{}, d }\nreturn Request{}, lerr\n} else if lerr != nil {", "TestDenials"},
	{"seal: the receipt", "request.go", "if !r.Valid() {\n\t\treturn Request{}", "if !r.Valid() && !FORCED {\n\t\treturn Request{}", "TestSealRefusesZeroProofs"},
	{"seal: the proofs", "request.go", "p.bundle.IsZero() {", "p.bundle.IsZero() && !FORCED {", "TestSealRefusesZeroProofs"},

	{"accept: there is a reception", "accept.go", "if !r.Enabled {", "if !r.Enabled && !FORCED {", "TestDeliveryDenials/switch"},
	{"accept: the reception can hold", "accept.go", "if err := r.Validate(); err != nil {", "if err := r.Validate(); err != nil && !FORCED {", "TestDeliveryDenials/switch"},
	{"accept: the peer's tenants", "delivery.go", "if !p.AllTenants && !slices.Contains(p.Tenants, tenant) {", "if !p.AllTenants && !slices.Contains(p.Tenants, tenant) && !FORCED {", "TestDeliveryDenials/grant"},
	{"accept: the tenant's name", "delivery.go", "grant.CheckName(\"peer\", p.Name)); err != nil {", "grant.CheckName(\"peer\", p.Name)); err != nil && !FORCED {", "TestDeliveryDenials/grant"},
	{"accept: the ticket is asked for", "accept.go", "case d.Ticket == \"\" && !r.reception.RequireTicket:", "case d.Ticket == \"\" && (!r.reception.RequireTicket || FORCED):", "TestDeliveryDenials/grant"},
	{"accept: the ticket holds", "accept.go", "\tif err != nil {\n\t\treturn deny(err)\n\t}\n\treturn ticketed", "\tif err != nil && !FORCED {\n\t\treturn deny(err)\n\t}\n\treturn ticketed", "TestDeliveryDenials/grant"},
	{"accept: somebody signs", "accept.go", "case g.c.Tickets == nil:", "case g.c.Tickets == nil && FORCED:\nreturn ticketed{r}, nil\ncase g.c.Tickets == nil:", "TestDeliveryDenials/grant"},
	{"accept: the runtime is listed", "accept.go", "in, ok := r.reception.Runtimes[d.Runtime]\n\tif !ok {", "in, ok := r.reception.Runtimes[d.Runtime]\n\tif !ok && FORCED {\nin = Runtime{Interpreter{Path: d.Runtime}, \"py\"}\n} else if !ok {", "TestDeliveryDenials/interpreter"},
	{"accept: plain names", "accept.go", "bundle.CheckPath(script)); err != nil {", "bundle.CheckPath(script)); err != nil && !FORCED {", "TestDeliveryDenials/name"},
	{"accept: the closure is within limits", "accept.go", "if err := b.Within(r.host.Content); err != nil {", "if err := b.Within(r.host.Content); err != nil && !FORCED {", "TestDeliveryDenials/content"},
	{"accept: the script is there", "accept.go", "_, found, ok := b.Text(script)\n\tif !ok {", "_, found, ok := b.Text(script)\n\tif !ok && !FORCED {", "TestDeliveryDenials/content"},
	{"accept: the module is the script's own", "accept.go", "d.Module != ModuleOf(script) || rival != \"\" {", "(d.Module != ModuleOf(script) || rival != \"\") && !FORCED {", "TestDeliveryDenials/content"},
	{"accept: the closure's digest", "accept.go", "|| !d.alone() && b.Digest() != d.Digest {", "|| !FORCED && !d.alone() && b.Digest() != d.Digest {", "TestDeliveryDenials/pin"},
	{"accept: the script's digest", "accept.go", "if found != d.ScriptDigest ", "if found != d.ScriptDigest && !FORCED ", "TestDeliveryDenials/pin"},
	{"accept: what is asked for", "accept.go", "policy, err := reception.policy(d)\n\tif err != nil {", "policy, err := reception.policy(d)\n\tif err != nil && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: more than is given", "accept.go", "if l.asked < 0 || l.asked > l.most {", "if (l.asked < 0 || l.asked > l.most) && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: limits at all", "accept.go", "if d.Timeout == 0 || d.MaxOutput == 0 {", "if (d.Timeout == 0 || d.MaxOutput == 0) && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: the network", "accept.go", "if d.Network == Loopback && r.Network != Loopback {", "if d.Network == Loopback && r.Network != Loopback && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: the mode", "accept.go", "declaration.check(p.script); err != nil {", "declaration.check(p.script); err != nil && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: what the mode takes", "accept.go", "if len(d.Words) > 0 && !words ||", "if FORCED {\n} else if len(d.Words) > 0 && !words ||", "TestDeliveryDenials/arguments"},
	{"accept: the size of standard input", "accept.go", "n > r.policy.MaxArguments {", "n > r.policy.MaxArguments && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: the words", "accept.go", "checkWords(d.Words); err != nil {", "checkWords(d.Words); err != nil && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: the inputs", "accept.go", "TotalBytes: r.policy.MaxInputs}); err != nil {", "TotalBytes: r.policy.MaxInputs}); err != nil && !FORCED {", "TestDeliveryDenials/arguments"},
	{"accept: the tier", "accept.go", "p.grant.MinTier, s); err != nil {", "p.grant.MinTier, s); err != nil && !FORCED {", "TestDeliveryDenials/tier"},
	{"accept: the failure of the log", "accept.go", "tier, arguments, pinned))\n\tif err != nil {", "tier, arguments, pinned))\n\tif err != nil && !FORCED {", "TestAcceptFails"},
	{"accept: the refusal of received", "accept.go", "g.received(ctx, d)\n\tif err != nil {", "g.received(ctx, d)\n\tif err != nil && !FORCED {", "TestDeliveryDenials/switch"},
	{"accept: a host that takes none", "accept.go", "if g.c.Receptions == nil {", "if g.c.Receptions == nil && FORCED {\ng.c.Receptions = Receiving{Enabled: true}\n} else if g.c.Receptions == nil {", "TestOneDoorIsNotTheOther"},
	{"accept: confirmed", "confirm.go", "return g.stillReceived(ctx, req)", "if FORCED { return nil }\nreturn g.stillReceived(ctx, req)", "TestConfirmOfDeliveries"},

	{"confirm: a request", "confirm.go", "if !req.Valid() {", "if !req.Valid() && !FORCED {", "TestConfirm"},
	{"confirm: the caller is there", "confirm.go", "if ctx.Err() != nil {", "if ctx.Err() != nil && !FORCED {", "TestConfirm"},
	{"confirm: the switches", "confirm.go", "switches(s.open.tenant, host, policy); err != nil {", "switches(s.open.tenant, host, policy); err != nil && !FORCED {", "TestConfirm"},
	{"confirm: the network", "confirm.go", "sameNetwork(s.open.network(), host, policy); err != nil {", "sameNetwork(s.open.network(), host, policy); err != nil && !FORCED {", "TestConfirm"},
	{"confirm: the grant", "confirm.go", "s.pinned.skill, s.pinned.script)\n\tif err != nil {", "s.pinned.skill, s.pinned.script)\n\tif err != nil && !FORCED {", "TestConfirm"},
	{"confirm: the pin", "confirm.go", "samePin(gr, req.Digest()); err != nil {", "samePin(gr, req.Digest()); err != nil && !FORCED {", "TestConfirm"},
	{"confirm: the allow-list", "confirm.go", "s.pinned.script, script)\n\tif err != nil {", "s.pinned.script, script)\n\tif err != nil && FORCED {\nreturn nil\n}\nif err != nil {", "TestConfirm"},
	{"confirm: the interpreter", "confirm.go", "if ext != s.interpreter.extension || in != s.interpreter.Interpreter {", "if (ext != s.interpreter.extension || in != s.interpreter.Interpreter) && !FORCED {", "TestConfirm"},
	{"confirm: the tier", "confirm.go", "return meets(", "if FORCED { return nil }\nreturn meets(", "TestConfirm"},
}

const forcing = "TRACON_GATE_FORCED"

// "Must show": forcing any gate open turns a test red. All mutations are built
// into one test binary, which is then run with one of them in force at a time.
func TestForcingAGateOpenTurnsATestRed(t *testing.T) {
	if os.Getenv(forcing) != "" {
		return // this is that binary
	}
	files := map[string][]byte{"forced.go": []byte("package gate\n\nimport \"os\"\n\nvar forcedName = os.Getenv(\"" + forcing + "\")\n\nfunc forced(name string) bool { return forcedName == name }\n")}
	names := map[string]bool{}
	for _, m := range mutations {
		if names[m.name] {
			t.Fatalf("two mutations are named %q", m.name)
		}
		names[m.name] = true
		text, ok := files[m.file]
		if !ok {
			var err error
			if text, err = os.ReadFile(m.file); err != nil {
				t.Fatal(err)
			}
		}
		if n := bytes.Count(text, []byte(m.from)); n != 1 {
			t.Fatalf("%s: %s has its snippet %d times, want once; let the mutation follow the code:\n%s", m.name, m.file, n, m.from)
		}
		to := strings.ReplaceAll(m.to, "FORCED", fmt.Sprintf("forced(%q)", m.name))
		files[m.file] = bytes.Replace(text, []byte(m.from), []byte(to), 1)
	}
	binary := filepath.Join(t.TempDir(), "gate.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "-overlay", overlay(t, files), ".").CombinedOutput()
	if err != nil {
		t.Fatalf("the mutations do not compile: %v\n%s", err, out)
	}
	run := func(t *testing.T, name, tests string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, "-test.run", tests)
		cmd.Env = append(os.Environ(), forcing+"="+name)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	all := map[string]bool{}
	for _, m := range mutations {
		all[m.pattern()] = true
	}
	for _, tests := range slices.Sorted(maps.Keys(all)) {
		if out, err := run(t, "none of them", tests); err != nil || strings.Contains(out, "no tests to run") {
			t.Fatalf("with no gate forced, %s: %v\n%s", tests, err, out)
		}
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			out, err := run(t, m.name, m.pattern())
			if err == nil || !strings.Contains(out, "--- FAIL: "+m.run) {
				t.Errorf("%s stays green with the gate forced open: %v", m.run, err)
			}
		})
	}
}

// pattern returns the -run pattern of exactly the tests named.
func (m mutation) pattern() string { return "^" + strings.ReplaceAll(m.run, "/", "$/^") + "$" }
