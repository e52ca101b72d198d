package mcpserver_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/internal/strictjson"
)

// Every configuration in docs/clients.md can be read, and names this program or this
// endpoint; a key stands in none of them.
func TestClientsOfTheDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(json|toml)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, line := range regexp.MustCompile("`(?:code --add-mcp ')?(\\{\".*?\\})'?`").FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, []string{"", "json", line[1]})
	}
	kinds := map[string]int{}
	for _, b := range blocks {
		kind, text := b[1], b[2]
		var v any
		if kind == "toml" {
			v = plainTOML(t, text)
		} else if err := strictjson.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("%v: %s", err, text)
			continue
		}
		kinds[kind]++
		if servers(t, v) != 1 {
			t.Errorf("it names no server, or more than one: %s", text)
		}
	}
	if kinds["json"] < 8 || kinds["toml"] < 2 {
		t.Errorf("the page has %v", kinds)
	}
}

// servers counts what names a server, and looks at it.
func servers(t *testing.T, v any) (n int) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += servers(t, e)
		}
	case map[string]any:
		for name, e := range v {
			switch name {
			case "command":
				args, _ := v["args"].([]any)
				if e != "tracon" || len(args) != 2 || args[0] != "mcp" {
					t.Errorf("it starts %v %v", e, args)
				}
				n++
			case "url", "httpUrl", "server_url":
				if e != "https://tracon.example/mcp" {
					t.Errorf("it asks %v", e)
				}
				n++
			case "Authorization":
				if s, _ := e.(string); !strings.HasPrefix(s, "Bearer $") {
					t.Errorf("a key stands in it: %v", e)
				}
			default:
				n += servers(t, e)
			}
		}
	}
	return n
}

// plainTOML reads the part of TOML that the page has: tables, and names with a value that
// is one of JSON too.
func plainTOML(t *testing.T, text string) map[string]any {
	t.Helper()
	tables := map[string]any{}
	var table map[string]any
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok && strings.HasSuffix(name, "]") {
			table = map[string]any{}
			tables[strings.TrimSuffix(name, "]")] = table
			continue
		}
		name, value, ok := strings.Cut(line, " = ")
		var v any
		if err := json.Unmarshal([]byte(value), &v); !ok || err != nil || table == nil || table[name] != nil {
			t.Fatalf("%q: %v", line, err)
		}
		table[name] = v
	}
	return tables
}
