package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// R28, R30: each run on the protocol's page is sent as it stands there, and what comes
// back has what stands below it.
func TestProtocolPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/runner-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, nil)
	examples := regexp.MustCompile("(?s)```json run\n(.*?)\n```\n\n```json (answer|problem)\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 3 || strings.Count(string(page), "```json") != 2*len(examples) {
		t.Fatalf("found %d examples", len(examples))
	}
	for _, e := range examples {
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.Address+"/runs", strings.NewReader(e[1]))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+r.one)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var got, want map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if err := json.Unmarshal([]byte(e[3]), &want); err != nil {
			t.Fatal(err)
		}
		if (res.StatusCode/100 == 2) != (e[2] == "answer") || !within(got, want) {
			t.Errorf("sent %s\ngot  %d %swant %s", e[1], res.StatusCode, body, e[3])
		}
	}
}

// within reports whether got has every member that want has, with its value.
func within(got, want map[string]any) bool {
	for name, w := range want {
		g := got[name]
		if inner, ok := w.(map[string]any); ok {
			if gotInner, ok := g.(map[string]any); !ok || !within(gotInner, inner) {
				return false
			}
			continue
		}
		if !reflect.DeepEqual(g, w) {
			return false
		}
	}
	return true
}
