package executortest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// words runs the words program and holds that each argument arrives.
func (k *trial) words(o Order, words ...string) {
	k.Helper()
	if words != nil {
		o.Arguments = words
	}
	want := ""
	for _, w := range words {
		want += w + "\x00"
	}
	k.exits(o, 0, want)
}

var ioCases = []testCase{
	{"arguments", "case 9: arguments arrive byte for byte, the empty one too; no shell, no splitting", Words, nil, func(k *trial) {
		k.words(k.program(Words), "--value", "-5", "My File — ünï.txt", "it's", "", "a\nb", "$(id)", "*", `\`, "&&")
	}},
	{"arguments like options", "case 10: what looks like the interpreter's option comes after the script's path", Words, nil, func(k *trial) {
		k.words(k.program(Words), "-c", "import os")
		k.words(k.program(Words), "--version")
		k.words(k.program(Words), "--", "-e", "1")
	}},
	{"no arguments", "case 9: no argument is none, not an empty one", Words, nil, func(k *trial) {
		k.words(k.program(Words))
		k.words(k.program(Words), []string{}...)
	}},
	{"largest argument", "case 11: an argument of 131,071 bytes passes", Words, nil, func(k *trial) {
		o := k.program(Words)
		o.Policy.MaxArguments = gate.CeilingMaxArguments
		k.words(o, strings.Repeat("x", gate.MaxArgument))
		o.Policy.MaxOutput = 4 << 20
		var many []string
		for total := 0; total+10_000+9 < gate.MaxArgumentTotal; total += 10_000 + 9 {
			many = append(many, strings.Repeat("y", 10_000))
		}
		k.words(o, many...)
	}},
	{"flags", "B4: arguments of mode flags arrive as the words that the declaration makes of them", Words, nil, func(k *trial) {
		o := k.program(Words)
		o.Mode, o.Arguments = gate.Flags, map[string]any{"verbose": true, "value": "-5", "r": nil}
		k.exits(o, 0, "--value=-5\x00--verbose\x00")
	}},
	{"standard input", "B4: arguments of mode stdin are the JSON on standard input, and nothing on the command line", Echo, nil, func(k *trial) {
		o := k.program(Echo)
		o.Mode, o.Arguments = gate.Stdin, map[string]any{"text": "ünï\n<&>", "n": 3}
		k.exits(o, 0, `{"n":3,"text":"ünï\n<&>"}`)
		w := k.program(Words)
		w.Mode, w.Arguments = gate.Stdin, map[string]any{"a": 1}
		k.exits(w, 0, "")
	}},
	{"large standard input", "case 23: 1 MiB of arguments to a script that reads none of it: its true exit code, no broken pipe, nothing blocked", Exit, nil, func(k *trial) {
		o := k.program(Exit)
		o.Policy.MaxArguments = 2 << 20
		o.Mode, o.Arguments = gate.Stdin, map[string]any{"x": strings.Repeat("x", 1<<20)}
		res := k.exits(o, 7, "")
		if len(res.Stderr) > 0 {
			k.bad("got standard error %q", res.Stderr)
		}
		e := k.program(Echo)
		e.Policy = gate.Policy{MaxArguments: 2 << 20, MaxOutput: 2 << 20, Timeout: enough}
		e.Mode, e.Arguments = gate.Stdin, o.Arguments
		k.exits(e, 0, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
	}},
	{"end of input", "case 24: where there are no arguments, standard input is at its end", Echo, nil, func(k *trial) {
		for _, mode := range []gate.Mode{gate.Argv, gate.None} {
			o := k.program(Echo)
			o.Mode = mode
			k.within(0, func() { k.exits(o, 0, "") })
		}
	}},
	{"both streams", "case 29, R27: a warning on standard error is success", Both, nil, func(k *trial) {
		res := k.exits(k.program(Both), 0, "out\n")
		if string(res.Stderr) != "warning\n" || res.Truncated {
			k.bad("got standard error %q, truncated %v", res.Stderr, res.Truncated)
		}
	}},
	{"strange bytes", "case 28: output is handed on as bytes", Bytes, nil, func(k *trial) {
		k.exits(k.program(Bytes), 0, strange)
	}},
	{"output limit", "R19: at most the limit of each stream is kept, and a cut is said; the script is not disturbed", Much, nil, func(k *trial) {
		for _, tc := range []struct {
			n         string
			want      int
			truncated bool
		}{{"1000", 1000, false}, {"1024", 1024, false}, {"1025", 1024, true}, {"10000", 1024, true}} {
			o := k.program(Much)
			o.Policy.MaxOutput, o.Arguments = 1024, []string{tc.n}
			res := k.exits(o, 0, strings.Repeat("a", tc.want))
			if res.Truncated != tc.truncated {
				k.bad("of %s bytes: got truncated %v, want %v", tc.n, res.Truncated, tc.truncated)
			}
		}
	}},
	{"flood", "case 26: output without end is cut and marked, and the script is stopped", Flood, nil, func(k *trial) {
		o := k.program(Flood)
		o.Policy.MaxOutput, o.Policy.Timeout = 64<<10, enough
		res := k.run(o)
		if res.Ending != executor.OutputFlood() && res.Ending != executor.Expired() {
			k.bad("got %v", res.Ending)
		}
		if !res.Truncated || len(res.Stdout) != 64<<10 {
			k.bad("got %d bytes, truncated %v", len(res.Stdout), res.Truncated)
		}
	}},
	{"UTF-8", "case 33: text is written as UTF-8, whatever the host's locale", Arrow, nil, func(k *trial) {
		k.exits(k.program(Arrow), 0, "→\n")
	}},
	{"live output", "live output is shown while the script runs, and is what the result holds", Progress, func(l Lacks) bool { return l.Live }, func(k *trial) {
		// cancelled waits for live output before it cancels.
		if err := k.cancelled(k.program(Progress), errGaveUp); !errors.Is(err, errGaveUp) {
			k.bad("got error %v: no output came while the script ran", err)
		}
		b := k.program(Both)
		b.Live = gate.NewLive(0)
		res := k.exits(b, 0, "out\n")
		b.Live.Close()
		got := map[gate.Stream][]byte{}
		for c := range b.Live.Chunks() {
			got[c.Stream] = append(got[c.Stream], c.Data...)
		}
		if !bytes.Equal(got[gate.Stdout], res.Stdout) || !bytes.Equal(got[gate.Stderr], res.Stderr) {
			k.bad("got %q, %q live and %q, %q in the result", got[gate.Stdout], got[gate.Stderr], res.Stdout, res.Stderr)
		}
	}},
	{"environment", "case 41: the environment is the fixed set and what the policy adds; nothing of the host's", Environment, nil, func(k *trial) {
		o := k.program(Environment)
		o.Policy.Environment = map[string]string{"REPORT_STYLE": "a b=c"}
		got := map[string]string{}
		for line := range strings.Lines(string(k.run(o).Stdout)) {
			n, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			got[n] = v
		}
		for n, want := range map[string]string{"LANG": "C.UTF-8", "TZ": "UTC", "REPORT_STYLE": "a b=c"} {
			if got[n] != want {
				k.bad("got %s=%q, want %q", n, got[n], want)
			}
		}
		// Shells add PWD, OLDPWD, SHLVL and _ of their own; Python adds LC_CTYPE.
		allowed := []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ", "REPORT_STYLE", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
		for _, n := range slices.Sorted(maps.Keys(got)) {
			if !slices.Contains(allowed, n) {
				k.bad("the script sees %s", n)
			}
		}
		for _, n := range []string{"PATH", "HOME", "TMPDIR"} {
			if got[n] == "" {
				k.bad("%s is not set", n)
			}
		}
	}},
	{"first line", "case 32: the interpreter is the one that the gate chose: no shebang, a strange one, one with CR LF", "", nil, func(k *trial) {
		for _, line := range []string{"", "#!/does/not/exist\n", "#!/usr/bin/env nothing\r\n"} {
			o := k.text(line+k.dialect.Programs[Both].Text, nil)
			k.exits(o, 0, "out\n")
		}
	}},
	{"no extension", "case 39b: the first line of a script without an extension is data for choosing the interpreter", "", nil, func(k *trial) {
		interpreter := map[string]string{"sh": "sh", "py": "python3", "js": "node"}[k.dialect.Extension]
		if interpreter == "" {
			k.Logf("left out: no first line chooses .%s", k.dialect.Extension)
			return
		}
		o := k.program(Both)
		o.Script = "run"
		o.Files = []bundle.File{{Path: "run", Data: []byte("#!/usr/bin/env " + interpreter + "\n" + k.dialect.Programs[Both].Text)}}
		k.exits(o, 0, "out\n")
	}},
}
