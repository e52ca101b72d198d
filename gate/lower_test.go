package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// B4, cases 9–14: only the lowered form reaches a script, byte for byte and in
// this order; where a value has none it is refused.
func TestLower(t *testing.T) {
	positions := map[string]Flag{"file": {Position: 1}, "to": {Position: 2}}
	tests := []struct {
		name  string
		mode  Mode
		flags map[string]Flag
		value string
		words []string
		stdin string
		fails string // what the error says; empty: it is lowered
	}{
		{name: "case 9", mode: Argv, value: `["--value","-5","My File — ünï.txt","it's","","a\nb"]`, words: []string{"--value", "-5", "My File — ünï.txt", "it's", "", "a\nb"}},
		{name: "case 10", mode: Argv, value: `["-c","import os"]`, words: []string{"-c", "import os"}},
		{name: "no splitting, no shell", mode: Argv, value: `["a b; rm -rf $HOME","*","%PATH%","--x=\"y\""]`, words: []string{"a b; rm -rf $HOME", "*", "%PATH%", `--x="y"`}},
		{name: "escapes", mode: Argv, value: `["\u00e9\ud83d\ude00\t\\\/"]`, words: []string{"é😀\t\\/"}},
		{name: "an empty list", mode: Argv, value: `[]`, words: []string{}},
		{name: "blanks", mode: Argv, value: " [ \"a\" ,\n\"b\" ] ", words: []string{"a", "b"}},
		{name: "case 12", mode: Argv, value: `"[\"--value\",\"3\"]"`, fails: "got a string"},
		{name: "case 13", mode: Argv, value: `{"value":3}`, fails: "got an object"},
		{name: "null", mode: Argv, value: `null`, fails: "got null"},
		{name: "a number in the list", mode: Argv, value: `["a",3]`, fails: "item 2 is a number"},
		{name: "true in the list", mode: Argv, value: `[true]`, fails: "item 1 is true"},
		{name: "null in the list", mode: Argv, value: `["a",null]`, fails: "item 2 is null"},
		{name: "an object in the list", mode: Argv, value: `[{"a":1}]`, fails: "item 1 is an object"},
		{name: "case 11: NUL", mode: Argv, value: `["ok","a\u0000b"]`, fails: "argument 2 holds NUL"},

		{name: "stdin", mode: Stdin, value: `{"a":1e400,"b":[9007199254740993]}`, stdin: `{"a":1e400,"b":[9007199254740993]}`},
		{name: "stdin of any kind", mode: Stdin, value: `[1]`, stdin: `[1]`},

		{name: "none", mode: None, value: `null`},
		{name: "none, as an object", mode: None, value: `{}`},
		{name: "none, as a list", mode: None, value: `[]`},
		{name: "something for none", mode: None, value: `{"a":1}`, fails: "takes no arguments"},
		{name: "false for none", mode: None, value: `false`, fails: "takes no arguments"},

		{name: "case 14", mode: Flags, value: `{"verbose":true,"position":["A,1","B,2"],"r":null}`, words: []string{"--position", "A,1", "--position", "B,2", "--verbose"}},
		{name: "absence", mode: Flags, value: `{"a":false,"b":null,"c":[]}`},
		{name: "an underscore", mode: Flags, value: `{"dry_run":true}`, words: []string{"--dry-run"}},
		{name: "numbers as they are written", mode: Flags, value: `{"a":9007199254740993,"b":1.0,"c":1e400}`, words: []string{"--a", "9007199254740993", "--b", "1.0", "--c", "1e400"}},
		{name: "an empty string", mode: Flags, value: `{"a":""}`, words: []string{"--a", ""}},
		{name: "a negative number", mode: Flags, value: `{"value":-5}`, words: []string{"--value=-5"}},
		{name: "a value that looks like a flag", mode: Flags, value: `{"value":"-x","other":"--delete"}`, words: []string{"--other=--delete", "--value=-x"}},
		{name: "a value that is a dash", mode: Flags, value: `{"value":"-"}`, words: []string{"--value=-"}},
		{name: "a list with a value that looks like a flag", mode: Flags, value: `{"v":["a","-x",-1]}`, words: []string{"--v", "a", "--v=-x", "--v=-1"}},
		{name: "a declared flag", mode: Flags, flags: map[string]Flag{"out": {Flag: "-o"}, "verbose": {Flag: "-v"}}, value: `{"verbose":true,"out":"x"}`, words: []string{"-o", "x", "-v"}},
		{name: "a short flag and a value that looks like one", mode: Flags, flags: map[string]Flag{"out": {Flag: "-o"}}, value: `{"out":"-rf"}`, fails: "would be taken for a flag"},
		{name: "a short flag and a negative number", mode: Flags, flags: map[string]Flag{"n": {Flag: "-n"}}, value: `{"n":-1}`, fails: "would be taken for a flag"},
		{name: "positions last, in their order", mode: Flags, flags: positions, value: `{"to":"b","file":"a","z":1}`, words: []string{"--z", "1", "a", "b"}},
		{name: "a position that repeats", mode: Flags, flags: positions, value: `{"file":["a","b"],"to":"c"}`, words: []string{"a", "b", "c"}},
		{name: "a position that looks like a flag", mode: Flags, flags: positions, value: `{"file":"-rf","to":"b","z":true}`, words: []string{"--z", "--", "-rf", "b"}},
		{name: "a position that is the end of flags", mode: Flags, flags: positions, value: `{"file":"--","to":"-x"}`, words: []string{"--", "--", "-x"}},
		{name: "no value at a position", mode: Flags, flags: positions, value: `{"file":null,"to":"b"}`, words: []string{"b"}},
		{name: "true at a position", mode: Flags, flags: positions, value: `{"file":true}`, fails: "stands at a position"},
		{name: "an object as a value", mode: Flags, value: `{"a":{}}`, fails: `"a": it is an object`},
		{name: "true in a list", mode: Flags, value: `{"a":["x",true]}`, fails: "item 2 is true"},
		{name: "a list in a list", mode: Flags, value: `{"a":[["x"]]}`, fails: "item 1 is a list"},
		{name: "case 13: a list for flags", mode: Flags, value: `["a"]`, fails: "got a list"},
		{name: "null for flags", mode: Flags, value: `null`, fails: "got null"},
		{name: "a property that brings its value along", mode: Flags, value: `{"value=-x":true}`, fails: "cannot be a flag"},
		{name: "a property without a name", mode: Flags, value: `{"":true}`, fails: "cannot be a flag"},
		{name: "a property that is a flag already", mode: Flags, value: `{"-c":"x"}`, fails: "cannot be a flag"},
		{name: "a property with a blank", mode: Flags, value: `{"a b":1}`, fails: "cannot be a flag"},
		{name: "a declared property of any name", mode: Flags, flags: map[string]Flag{"größe in m": {Flag: "--size"}}, value: `{"größe in m":1}`, words: []string{"--size", "1"}},
		{name: "two properties of one flag", mode: Flags, value: `{"dry_run":true,"dry-run":false}`, fails: "are one flag"},
		{name: "a property that takes a declared flag", mode: Flags, flags: map[string]Flag{"size": {Flag: "--len"}}, value: `{"size":1,"len":2}`, fails: "are one flag"},
		{name: "case 11: NUL in a flag's value", mode: Flags, value: `{"a":"x\u0000"}`, fails: "holds NUL"},

		{name: "no mode", value: `[]`, fails: "no argument mode"},
		{name: "another mode", mode: "shell", value: `[]`, fails: "no argument mode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			words, stdin, err := lower(Declaration{Mode: tt.mode, Flags: tt.flags}, []byte(tt.value))
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) || words != nil || stdin != nil {
					t.Errorf("got %q, %q, %v; want an error with %q", words, stdin, err, tt.fails)
				}
				return
			}
			if err != nil || !cmp.Equal(words, tt.words) || string(stdin) != tt.stdin {
				t.Errorf("got %q, %q, %v; want %q, %q", words, stdin, err, tt.words, tt.stdin)
			}
		})
	}
}

// Case 11: what Linux takes in one execve, to the byte.
func TestLowerLimits(t *testing.T) {
	list := func(words []string) []byte {
		b, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	filled := func(total int) (words []string) { // of total bytes with NUL and pointer each
		for total > 100_009+9 {
			words = append(words, strings.Repeat("x", 100_000))
			total -= 100_009
		}
		return append(words, strings.Repeat("x", total-9))
	}
	for _, tt := range []struct {
		name  string
		words []string
		fails string
	}{
		{"131,071 bytes", []string{strings.Repeat("x", 131_071)}, ""},
		{"131,072 bytes", []string{strings.Repeat("x", 131_072)}, "argument 1 has 131072 bytes, at most 131071"},
		{"131,072 bytes of two", []string{"a", strings.Repeat("é", 65_536)}, "argument 2 has 131072 bytes"},
		{"all that fits", filled(MaxArgumentTotal), ""},
		{"a byte more", filled(MaxArgumentTotal + 1), "the arguments have 1966081 bytes in all, at most 1966080"},
		{"many empty ones", slices.Repeat([]string{""}, MaxArgumentTotal/9), ""},
		{"one empty one too many", slices.Repeat([]string{""}, MaxArgumentTotal/9+1), "in all"},
	} {
		words, _, err := lower(Declaration{Mode: Argv}, list(tt.words))
		switch {
		case tt.fails == "" && (err != nil || !slices.Equal(words, tt.words)):
			t.Errorf("%s: got %d words, %v", tt.name, len(words), err)
		case tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.fails)
		}
	}
}

// Whatever a model sends: no value is taken for a flag, nothing is split or
// joined, and every word is one that a program can be given.
func FuzzLowerFlags(f *testing.F) {
	f.Add("value", "-x", "file", "--")
	f.Add("a=b", "", "-c", "x")
	f.Add("", "\x00", "dry_run", "dry-run")
	f.Fuzz(func(t *testing.T, name, value, name2, value2 string) {
		object, err := json.Marshal(map[string]string{name: value, name2: value2})
		if err != nil {
			return
		}
		var sent map[string]string // as JSON has it: what is not UTF-8 was replaced
		if err := json.Unmarshal(object, &sent); err != nil {
			t.Fatal(err)
		}
		words, _, err := lower(Declaration{Mode: Flags, Flags: map[string]Flag{"file": {Position: 1}, "short": {Flag: "-s"}}}, object)
		if err != nil {
			return
		}
		for _, w := range words {
			if strings.ContainsRune(w, 0) || len(w) > MaxArgument {
				t.Errorf("%s becomes %q", object, words)
			}
		}
		if err := readBack(words, sent); err != nil {
			t.Errorf("%s becomes %q: %v", object, words, err)
		}
	})
}

// readBack reads words as a program does that takes no abbreviations, and
// compares what it finds with what was sent.
func readBack(words []string, sent map[string]string) error {
	left := map[string]string{}
	for name, value := range sent {
		left[Flag{}.Name(name)] = value
	}
	delete(left, "--file")
	if v, ok := sent["short"]; ok {
		delete(left, "--short")
		left["-s"] = v
	}
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		if w == "--" || !strings.HasPrefix(w, "-") {
			if w != "--" {
				words = append([]string{w}, words...)
			}
			break
		}
		name, value, joined := strings.Cut(w, "=")
		if !joined {
			if len(words) == 0 || strings.HasPrefix(words[0], "-") {
				return fmt.Errorf("%q has no value", w)
			}
			value, words = words[0], words[1:]
		}
		if want, ok := left[name]; !ok || want != value {
			return fmt.Errorf("%q has %q, want %q", name, value, want)
		}
		delete(left, name)
	}
	want := []string{}
	if v, ok := sent["file"]; ok {
		want = append(want, v)
	}
	if !slices.Equal(append([]string{}, words...), want) {
		return fmt.Errorf("at positions stand %q, want %q", words, want)
	}
	if len(left) > 0 {
		return errors.New("something is lost")
	}
	return nil
}

// Whatever is sent as a list arrives as it was sent, or is refused.
func FuzzLowerArgv(f *testing.F) {
	f.Add([]byte(`["--value","-5","My File — ünï.txt","it's","","a\nb"]`))
	f.Add([]byte(`"[]"`))
	f.Add([]byte(` [ "a" , "b" ] `))
	f.Add([]byte(`["a",["b"]]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, mode := range Modes() {
			words, stdin, err := lower(Declaration{Mode: mode}, value)
			if err != nil && (words != nil || stdin != nil) {
				t.Errorf("%s: refused, and lowered to %q, %q", mode, words, stdin)
			}
			if formErr := mode.form(value); formErr != nil && err == nil {
				t.Errorf("%s: its form is refused (%v), and it is lowered", mode, formErr)
			}
			if mode != Argv || err != nil {
				continue
			}
			var want []string
			if err := json.Unmarshal(value, &want); err != nil || !slices.Equal(words, want) {
				t.Errorf("%s becomes %q, want %q", value, words, want)
			}
		}
	})
}
