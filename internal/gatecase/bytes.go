package gatecase

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

func contents() []Case {
	limit := func(l bundle.Limits) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.Host(t, func(h *gate.Host) { h.Content = l }) }
	}
	put := func(path string) func(testing.TB, *House) {
		return func(_ testing.TB, h *House) { h.Skills.Of(Skill).Put(path, "x") }
	}
	declare := func(text string) func(testing.TB, *House) {
		return func(t testing.TB, h *House) {
			h.Skills.Of(Skill).Declaration = text
			h.Grant(t, nil)
		}
	}
	return []Case{
		{"a file too large", gate.ContentGate, "R15", limit(bundle.Limits{FileBytes: 64})},
		{"too large in all", gate.ContentGate, "R15", limit(bundle.Limits{TotalBytes: 100})},
		{"too many files", gate.ContentGate, "R15", limit(bundle.Limits{Files: 3})},
		{"too deep", gate.ContentGate, "R15", limit(bundle.Limits{Depth: 2})},
		{"a path too long", gate.ContentGate, "R15", limit(bundle.Limits{PathBytes: 15})},
		{"a limit that is negative", gate.ContentGate, "R15", limit(bundle.Limits{Depth: -1})},
		{"a source that knows no limits", gate.ContentGate, "R15", func(t testing.TB, h *House) {
			h.Skills.Of(Skill).Lax = true
			limit(bundle.Limits{FileBytes: 64})(t, h)
		}},
		{"a declaration too large, from a source that knows no limits", gate.ContentGate, "R15", func(t testing.TB, h *House) {
			h.Skills.Of(Skill).Lax = true
			limit(bundle.Limits{FileBytes: int64(len(declaration)) - 1})(t, h)
		}},
		{"names that differ by case", gate.ContentGate, "case 8", put("Assets/units.json")},
		{"names that differ by normal form", gate.ContentGate, "case 8", put("scripts/e\u0301.py")},
		{"a file and a folder", gate.ContentGate, "case 8", put("scripts/lib/units.py/x")},
		{"a file that is named upwards", gate.ContentGate, "case 2", put("../x.py")},
		{"a file twice", gate.ContentGate, "B1", put("assets/units.json")},
		{"the skill went away since it was looked up", gate.ContentGate, "case 48", func(_ testing.TB, h *House) { h.Skills.Of(Skill).Gone = true }},
		{"the script is not among the files", gate.ContentGate, "B1", func(t testing.TB, h *House) {
			h.Skills.Of(Skill).Scripts = append(h.Skills.Of(Skill).Scripts, "scripts/lost.py")
			h.ask(t, "scripts/lost.py", `[]`)
		}},
		{"nothing is read", gate.ContentGate, "B1", func(_ testing.TB, h *House) { h.Config.Contents = hollow{h.Skills} }},
		{"a declaration that is none", gate.ContentGate, "R13", declare(`{"scripts/run.py": [}`)},
		{"a script that the declaration does not name", gate.ContentGate, "R13", declare(`{}`)},
		{"a mode that is none", gate.ContentGate, "B4", declare(`{"scripts/run.py": {"mode": "shell"}}`)},
		{"a module that is another script", gate.ContentGate, "B4", declare(`{"scripts/run.py": {"mode": "argv", "module": "os"}}`)},
		{"a module that Python finds elsewhere", gate.ContentGate, "B4", func(t testing.TB, h *House) {
			h.Skills.Of(Skill).Put("scripts/run/__init__.py", "")
			h.Skills.Of(Skill).Files = slices.DeleteFunc(h.Skills.Of(Skill).Files, func(f bundle.File) bool { return f.Path == "scripts/run" })
			declare(`{"scripts/run.py": {"mode": "argv", "module": "scripts.run"}}`)(t, h)
		}},
		{"a module of a path that none can have", gate.ContentGate, "B4", declare(`{"scripts/run.py": {"mode": "argv", "module": "scripts.run "}}`)},
		{"an output pattern upwards", gate.ContentGate, "B5", declare(`{"scripts/run.py": {"mode": "argv", "outputs": ["../*"]}}`)},
		{"a timeout below zero", gate.ContentGate, "R23", declare(`{"scripts/run.py": {"mode": "argv", "seconds": -1}}`)},
	}
}

// hollow reads nothing and says that all is well.
type hollow struct{ gate.Contents }

func (hollow) Read(context.Context, string, string, bundle.Limits) (bundle.Bundle, error) {
	return bundle.Bundle{}, nil
}

func pins() []Case {
	edit := func(path, from, to string) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.edit(t, path, from, to) }
	}
	files := func(change func([]bundle.File) []bundle.File) func(testing.TB, *House) {
		return func(_ testing.TB, h *House) {
			src := h.Skills.Of(Skill)
			src.Files = change(src.Files)
		}
	}
	return []Case{
		{"a byte more in the script", gate.PinGate, "case 42", edit("scripts/run.py", "MILE)\n", "MILE)\n\n")},
		{"a byte in the script", gate.PinGate, "case 42", edit("scripts/run.py", "MILE", "MILF")},
		{"a byte in a sibling module", gate.PinGate, "case 42", edit("scripts/lib/units.py", "1.6", "1.7")},
		{"a byte in an asset", gate.PinGate, "case 42", edit("assets/units.json", "1.6", "1.7")},
		{"a byte in the declared schema", gate.PinGate, "case 42", func(_ testing.TB, h *House) {
			src := h.Skills.Of(Skill)
			src.Declaration = strings.Replace(src.Declaration, `"items": {"type": "string"}`, `"items": {"type": "number"}`, 1)
		}},
		{"a blank in the declaration", gate.PinGate, "case 42", func(_ testing.TB, h *House) { h.Skills.Of(Skill).Declaration += " " }},
		{"a byte in SKILL.md", gate.PinGate, "B1", edit("SKILL.md", "name", "nama")},
		{"CR LF", gate.PinGate, "B1", edit("scripts/run.py", "\n", "\r\n")},
		{"a file more", gate.PinGate, "B1", func(_ testing.TB, h *House) { h.Skills.Of(Skill).Put("scripts/lib/json.py", "") }},
		{"a file less", gate.PinGate, "B1", files(func(f []bundle.File) []bundle.File { return f[1:] })},
		{"a file under another name", gate.PinGate, "B1", files(func(f []bundle.File) []bundle.File {
			f[1].Path = "assets/units.jsom"
			return f
		})},
		{"two files with each other's content", gate.PinGate, "B1", files(func(f []bundle.File) []bundle.File {
			f[0].Data, f[1].Data = f[1].Data, f[0].Data
			return f
		})},
		{"a byte moved from one file to the next", gate.PinGate, "B1", files(func(f []bundle.File) []bundle.File {
			f[1].Data = append([]byte{f[0].Data[len(f[0].Data)-1]}, f[1].Data...)
			f[0].Data = f[0].Data[:len(f[0].Data)-1]
			return f
		})},
		{"deleted and imported again with other bytes", gate.PinGate, "case 48", func(_ testing.TB, h *House) {
			h.Skills.Of(Skill).Files = append([]bundle.File{}, h.Skills.Of("private").Files...)
			h.Skills.Of(Skill).Put("new", "")
		}},
		{"its own of another pin, beside a matching one for the skill", gate.PinGate, "case 45", func(t testing.TB, h *House) {
			h.edit(t, "assets/units.json", "1.6", "1.7")
			h.Grant(t, func(g *grant.Grant) { all(&g.Ref) })
		}},
		{"that for the skill is of another pin", gate.PinGate, "case 45", func(t testing.TB, h *House) {
			h.Call.Script = "scripts/free.py"
			h.Grant(t, func(g *grant.Grant) { all(&g.Ref) })
			h.edit(t, "assets/units.json", "1.6", "1.7")
		}},
	}
}

func arguments() []Case {
	send := func(script, text string) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.ask(t, script, text) }
	}
	argv := func(text string) func(testing.TB, *House) { return send("scripts/run.py", text) }
	free := func(text string) func(testing.TB, *House) { return send("scripts/free.py", text) }
	stdin := func(text string) func(testing.TB, *House) { return send("scripts/stdin.py", text) }
	flags := func(text string) func(testing.TB, *House) { return send("scripts/flags.py", text) }
	raised := func(change func(testing.TB, *House)) func(testing.TB, *House) {
		return func(t testing.TB, h *House) {
			h.Policy(t, func(p *gate.Policy) { p.MaxArguments = gate.CeilingMaxArguments })
			change(t, h)
		}
	}
	inputs := func(files ...bundle.File) func(testing.TB, *House) {
		return func(t testing.TB, h *House) {
			h.Policy(t, func(p *gate.Policy) { p.MaxInputs = 100 })
			h.Call.Inputs = files
		}
	}
	list := func(n int) string { return `["` + repeat("x", n-4) + `"]` } // JSON of n bytes
	return []Case{
		{"a byte above the default limit", gate.ArgumentsGate, "R12", argv(list(gate.DefaultMaxArguments + 1))},
		{"blanks above the limit", gate.ArgumentsGate, "R12", argv(`["x"]` + repeat(" ", gate.DefaultMaxArguments))},
		{"a byte above the tenant's limit", gate.ArgumentsGate, "R12", func(t testing.TB, h *House) {
			h.Policy(t, func(p *gate.Policy) { p.MaxArguments = 20 })
			h.ask(t, "scripts/run.py", list(21))
		}},
		{"one argument of 131,072 bytes", gate.ArgumentsGate, "case 11", raised(free(list(gate.MaxArgument + 1 + 4)))},
		{"more in all than a program can be given", gate.ArgumentsGate, "case 11", raised(free(`[` + repeat(`"x",`, 200_000) + `"x"]`))},
		{"an argument with NUL", gate.ArgumentsGate, "case 11", free(`["a\u0000` + Canary + `"]`)},
		{"a flag's value with NUL", gate.ArgumentsGate, "case 11", flags(`{"name":"a\u0000` + Canary + `"}`)},
		{"the list as a string", gate.ArgumentsGate, "case 12", argv(`"[\"--value\",\"` + Canary + `\"]"`)},
		{"an object where a list is taken", gate.ArgumentsGate, "case 13", argv(`{"value":"` + Canary + `"}`)},
		{"a list where an object is taken", gate.ArgumentsGate, "case 13", stdin(`["` + Canary + `"]`)},
		{"a list where flags are taken", gate.ArgumentsGate, "case 13", flags(`["` + Canary + `"]`)},
		{"null where a list is taken", gate.ArgumentsGate, "case 13", free(`null`)},
		{"null where flags are taken", gate.ArgumentsGate, "case 13", flags(`null`)},
		{"a number in the list", gate.ArgumentsGate, "R13", free(`["--value",3]`)},
		{"null in the list", gate.ArgumentsGate, "R13", free(`[null]`)},
		{"a list in the list", gate.ArgumentsGate, "R13", free(`[["x"]]`)},
		{"something where nothing is taken", gate.ArgumentsGate, "B4", send("scripts/none.py", `["`+Canary+`"]`)},
		{"env", gate.ArgumentsGate, "case 15", stdin(`{"value":1,"env":{"PATH":"` + Canary + `"}}`)},
		{"cwd", gate.ArgumentsGate, "case 15", stdin(`{"value":1,"cwd":"` + Canary + `"}`)},
		{"interpreter", gate.ArgumentsGate, "case 15", stdin(`{"value":1,"interpreter":"` + Canary + `"}`)},
		{"a name in another case", gate.ArgumentsGate, "case 16", stdin(`{"value":1,"tenant":"a","TENANT":"` + Canary + `"}`)},
		{"a name that folds", gate.ArgumentsGate, "case 16", stdin(`{"value":1,"\u017fkill":"` + Canary + `"}`)},
		{"a name twice", gate.ArgumentsGate, "case 16", stdin(`{"value":1,"value":2}`)},
		{"a name twice, once as an escape", gate.ArgumentsGate, "case 16", stdin(`{"value":1,"valu\u0065":2}`)},
		{"a name twice, further in", gate.ArgumentsGate, "case 16", send("scripts/open.py", `{"a":[{"b":1,"b":2}]}`)},
		{"half a surrogate", gate.ArgumentsGate, "case 16", free(`["\ud800"]`)},
		{"surrogates in the wrong order", gate.ArgumentsGate, "case 16", free(`["\udc00\ud800"]`)},
		{"not UTF-8", gate.ArgumentsGate, "case 16", free("[\"\xff\"]")},
		{"two values", gate.ArgumentsGate, "case 16", free(`["a"]["` + Canary + `"]`)},
		{"a brace too many", gate.ArgumentsGate, "case 16", free(`["a"]]`)},
		{"depth 10,000", gate.ArgumentsGate, "case 16", send("scripts/open.py", repeat("[", 10_000)+repeat("]", 10_000))},
		{"blanks alone", gate.ArgumentsGate, "case 16", free(`   `)},
		{"a comment", gate.ArgumentsGate, "case 16", free(`["a" /* b */]`)},
		{"a comma at the end", gate.ArgumentsGate, "case 16", free(`["a",]`)},
		{"a byte order mark", gate.ArgumentsGate, "case 16", free("\ufeff[]")},
		{"NaN", gate.ArgumentsGate, "case 17", send("scripts/open.py", `NaN`)},
		{"a fraction where an integer is wanted", gate.ArgumentsGate, "case 17", stdin(`{"value":9007199254740993.5}`)},
		{"a number that fills the memory", gate.ArgumentsGate, "case 17", stdin(`{"value":1e999999999}`)},
		{"a string where an integer is wanted", gate.ArgumentsGate, "R13", stdin(`{"value":"` + Canary + `"}`)},
		{"a value that is not listed", gate.ArgumentsGate, "R13", stdin(`{"value":1,"unit":"` + Canary + `"}`)},
		{"a value that is required", gate.ArgumentsGate, "R13", stdin(`{}`)},
		{"none, where one is required", gate.ArgumentsGate, "R13", stdin(``)},
		{"an object as a flag's value", gate.ArgumentsGate, "case 14", flags(`{"a":{"b":"` + Canary + `"}}`)},
		{"a flag that repeats lists", gate.ArgumentsGate, "case 14", flags(`{"a":[["` + Canary + `"]]}`)},
		{"a short flag whose value looks like a flag", gate.ArgumentsGate, "case 14", flags(`{"short":"--` + Canary + `"}`)},
		{"presence at a position", gate.ArgumentsGate, "case 14", flags(`{"file":true}`)},
		{"a property that brings its value along", gate.ArgumentsGate, "R13", flags(`{"value=` + "3" + `":true}`)},
		{"a property that ends the flags", gate.ArgumentsGate, "R13", flags(`{"":true}`)},
		{"a property that is a flag already", gate.ArgumentsGate, "R13", flags(`{"-c":"` + Canary + `"}`)},
		{"two properties of one flag", gate.ArgumentsGate, "R13", flags(`{"dry_run":true,"dry-run":false}`)},
		{"an input too large", gate.ArgumentsGate, "B5", inputs(bundle.File{Path: "in.txt", Data: make([]byte, 101)})},
		{"inputs too large in all", gate.ArgumentsGate, "B5", inputs(bundle.File{Path: "a", Data: make([]byte, 60)}, bundle.File{Path: "b", Data: make([]byte, 60)})},
		{"an input that is named upwards", gate.ArgumentsGate, "B5", inputs(bundle.File{Path: "../in.txt"})},
		{"an input with an absolute path", gate.ArgumentsGate, "B5", inputs(bundle.File{Path: "/in.txt"})},
		{"inputs that differ by case", gate.ArgumentsGate, "case 8", inputs(bundle.File{Path: "in.txt"}, bundle.File{Path: "IN.txt"})},
		{"an input twice", gate.ArgumentsGate, "B5", inputs(bundle.File{Path: "in.txt"}, bundle.File{Path: "in.txt"})},
		{"too many inputs", gate.ArgumentsGate, "B5", func(_ testing.TB, h *House) {
			for i := range bundle.DefaultFiles + 1 {
				b, _ := json.Marshal(i)
				h.Call.Inputs = append(h.Call.Inputs, bundle.File{Path: string(b)})
			}
		}},
	}
}
