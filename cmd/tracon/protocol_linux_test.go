package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/wire"
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
	live := regexp.MustCompile("(?s)```json live run\n(.*?)\n```\n\n```json lines\n(.*?\n)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 3 || len(live) != 1 || strings.Count(string(page), "```json") != 2*(len(examples)+len(live)) {
		t.Fatalf("found %d and %d examples", len(examples), len(live))
	}
	r.shows(t, live[0][1], live[0][2])
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

// shows holds that the run is answered by lines as those that are wanted: the same output
// of each stream, however it is parted, and an end that has what the last one has.
func (r *aRunner) shows(t *testing.T, run, want string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.Address+"/runs", strings.NewReader(run))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.one)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", wire.LiveType+", application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != wire.LiveType {
		t.Fatalf("got %d, %q, %s, %v", res.StatusCode, res.Header.Get("Content-Type"), body, err)
	}
	gotOut, gotEnd := linesOf(t, string(body))
	wantOut, wantEnd := linesOf(t, want)
	if !maps.Equal(gotOut, wantOut) || !within(gotEnd, wantEnd) {
		t.Errorf("sent %s\ngot  %swant %s", run, body, want)
	}
}

// linesOf reads an answer of lines: the output by stream, and the last line.
func linesOf(t *testing.T, text string) (output map[string]string, end map[string]any) {
	t.Helper()
	frames, lines := wire.NewFrames(strings.NewReader(text), 0), strings.Split(text, "\n")
	output = map[string]string{}
	for {
		f, err := frames.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if f.Output != nil {
			output[f.Output.Stream] += string(f.Output.Data)
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-2]), &end); err != nil {
		t.Fatal(err)
	}
	return output, end
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
