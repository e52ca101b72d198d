package strictjson

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Case 16 and 17 of the runs: every kind of JSON that two readers may take for
// two things is refused with its reason, and numbers keep their text.
func TestCanonical(t *testing.T) {
	tests := []struct {
		name, in, want string // want: the canonical text, or after "!" a part of the error
	}{
		{"blanks", " { \"b\" : [ 1 , 2 ] , \"a\" : null } ", `{"b":[1,2],"a":null}`},
		{"order is kept", `{"b":1,"a":2}`, `{"b":1,"a":2}`},
		{"escapes are shortened", `"\u0041\/\u00e9"`, `"A/é"`},
		{"controls stay escaped", `"\u0000\n"`, `"\u0000\n"`},
		{"a pair of surrogates", `"\ud83d\ude00"`, `"😀"`},
		{"case counts", `{"tenant":"a","TENANT":"b"}`, `{"tenant":"a","TENANT":"b"}`},
		{"long s is another name", `{"ſkill":"x","skill":"y"}`, `{"ſkill":"x","skill":"y"}`},
		{"beyond double", `9007199254740993`, `9007199254740993`},
		{"beyond the largest double", `1e400`, `1e400`},
		{"the point stays", `1.0`, `1.0`},
		{"minus zero stays", `-0`, `-0`},
		{"empty name", `{"":1}`, `{"":1}`},
		{"empty text", ``, `!there is no value`},
		{"blanks alone", "  \n", `!there is no value`},
		{"a name twice", `{"a":{"b":1,"b":2}}`, `!/a/b: this name stands twice`},
		{"a name twice by escape", `{"a":1,"\u0061":2}`, `!/a: this name stands twice`},
		{"lone surrogate", `"\ud800"`, `!surrogate`},
		{"lone low surrogate in a name", `{"\udc00":1}`, `!surrogate`},
		{"not UTF-8", "\"\xff\"", `!UTF-8`},
		{"byte order mark", "\xef\xbb\xbf1", `!invalid`},
		{"two values", `1 2`, `!more than one value`},
		{"two values without a blank", `{}{}`, `!more than one value`},
		{"trailing comma", `[1,]`, `!`},
		{"trailing text", `[1]x`, `!`},
		{"comment", `[1]//x`, `!`},
		{"cut off", `{"a":[1`, `!`},
		{"cut off in a string", `{"a":"b`, `!`},
		{"leading zero", `01`, `!`},
		{"NaN", `NaN`, `!`},
		{"single quotes", `{'a':1}`, `!`},
		{"name without quotes", `{a:1}`, `!`},
		{"name that is a number", `{1:1}`, `!`},
		{"raw line feed in a string", "\"\n\"", `!`},
		{"depth 64", strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		{"depth 65", strings.Repeat("[", 65) + strings.Repeat("]", 65), `!nested deeper than 64`},
		{"depth 10,000", strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000), `!nested deeper than 64`},
		{"too many", "[" + strings.Repeat("1,", 1<<18) + "1]", `!more than 262144 values`},
		{"long number", strings.Repeat("1", 513), `!a number of 513 characters`},
		{"huge exponent", `[1e1000000000]`, `!/0: a number with the exponent 1000000000`},
		{"exponent beyond int", `1e99999999999999999999`, `!exponent`},
		{"huge negative exponent", `1E-1001`, `!exponent`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Canonical([]byte(tt.in), Limits{})
			part, bad := strings.CutPrefix(tt.want, "!")
			switch {
			case bad && (err == nil || !errors.Is(err, ErrJSON) || !strings.Contains(err.Error(), part)):
				t.Fatalf("got %s, error %v; want an error with %q", clip(string(got), 80), err, part)
			case bad && len(err.Error()) > 500:
				t.Fatalf("the error has %d bytes", len(err.Error()))
			case !bad && (err != nil || string(got) != tt.want):
				t.Fatalf("got %s, error %v; want %s", got, err, tt.want)
			}
			if !bad {
				again, err := Canonical(got, Limits{})
				if err != nil || string(again) != string(got) {
					t.Fatalf("a second time: got %s, error %v", again, err)
				}
			}
		})
	}
}

func TestDecode(t *testing.T) {
	_, got, err := Decode([]byte(`{"a":[1.0,"x",true,false,null,{}],"b":[]}`), Limits{})
	want := map[string]any{"a": []any{json.Number("1.0"), "x", true, false, nil, map[string]any{}}, "b": []any{}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %#v, error %v; want %#v", got, err, want)
	}
}

// Case 15 and 16: a door takes exact names and none that it does not know.
func TestUnmarshal(t *testing.T) {
	type door struct {
		Tenant string `json:"tenant"`
		Skill  string `json:"skill"`
		Count  int    `json:"count"`
	}
	tests := []struct{ name, in, want string }{
		{"exact", `{"tenant":"a","skill":"b","count":3}`, ""},
		{"upper case", `{"TENANT":"a"}`, "/TENANT: unknown member"},
		{"long s", `{"ſkill":"a"}`, "unknown member"},
		{"another member", `{"env":{}}`, "/env: unknown member"},
		{"twice", `{"tenant":"a","tenant":"b"}`, "stands twice"},
		{"both cases", `{"tenant":"a","TENANT":"b"}`, "unknown member"},
		{"wrong type", `{"tenant":3}`, "/tenant: a number does not fit"},
		{"fraction", `{"count":1.0}`, "/count: "},
		{"too large", `{"count":9223372036854775808}`, "/count: "},
		{"depth", `{"x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`, "nested deeper"},
		{"two values", `{}{}`, "more than one value"},
		{"nothing", ``, "no value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d door
			err := Unmarshal([]byte(tt.in), &d)
			if tt.want == "" {
				if err != nil || d != (door{"a", "b", 3}) {
					t.Fatalf("got %+v, error %v", d, err)
				}
				return
			}
			if !errors.Is(err, ErrJSON) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// An error shows what is not printable as an escape: it goes to terminals.
func TestErrorIsPlain(t *testing.T) {
	_, err := Canonical([]byte("{\"\x1b[31m\":1}"), Limits{})
	_, err2 := Canonical([]byte(`{"\u001b[31m`+strings.Repeat("x", 1000)+`":[01]}`), Limits{})
	for _, err := range []error{err, err2} {
		if err == nil || strings.ContainsRune(err.Error(), 0x1b) || len(err.Error()) > 400 {
			t.Errorf("got %q", err)
		}
	}
}

// A string without escapes is written as it stands, whatever is in it: that is its
// shortest form.
func TestPlainStrings(t *testing.T) {
	var text []rune
	for r := rune(' '); r <= utf8.MaxRune; r++ {
		if r != '"' && r != '\\' && utf8.ValidRune(r) {
			text = append(text, r)
		}
	}
	want, err := jsontext.AppendQuote(nil, string(text))
	if err != nil {
		t.Fatal(err)
	}
	raw := `"` + string(text) + `"`
	if got, err := Canonical([]byte(raw), Limits{}); err != nil || string(got) != raw || string(want) != raw {
		t.Errorf("got %d bytes, %v; want the %d that came, as the library writes them (%d)", len(got), err, len(raw), len(want))
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\u00e9"],"b":{"c":null}}`, `[]`, `"\ud83d\ude00"`, `1e400`, `{"a":1,"a":2}`, "\xff", `[[[[`, ` 1 `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, v, err := Decode(b, Limits{})
		if err != nil {
			if !errors.Is(err, ErrJSON) || len(err.Error()) > 1000 {
				t.Fatalf("error %q", err)
			}
			return
		}
		again, v2, err := Decode(got, Limits{})
		if err != nil || string(again) != string(got) || !reflect.DeepEqual(v, v2) {
			t.Fatalf("%q became %q, then %q, error %v", b, got, again, err)
		}
		// A second reader must see the same.
		var std any
		dec := json.NewDecoder(strings.NewReader(string(got)))
		dec.UseNumber()
		if err := dec.Decode(&std); err != nil || !reflect.DeepEqual(std, v) {
			t.Fatalf("encoding/json sees %#v, error %v; we see %#v", std, err, v)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	in, err := os.ReadFile("testdata/arguments.json")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(in, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Cases 12 and 13: a model that sends another type is told in words of JSON which one
// is taken, and not how this program keeps it.
func TestWrongTypeNamesTheRightOne(t *testing.T) {
	var d struct {
		Words  []string          `json:"words"`
		Counts []int             `json:"counts"`
		Bytes  []byte            `json:"bytes"`
		Map    map[string]string `json:"map"`
		Inner  *struct{}         `json:"inner"`
		At     time.Time         `json:"at"`
		Count  *int64            `json:"count"`
		Share  float64           `json:"share"`
		Yes    bool              `json:"yes"`
		Text   string            `json:"text"`
	}
	for _, tt := range []struct{ in, want string }{
		{`{"words":"[\"--value\",\"3\"]"}`, "/words: a string does not fit here; it takes a list of strings"},
		{`{"words":{"a":1}}`, "/words: an object does not fit here; it takes a list of strings"},
		{`{"words":[1]}`, "/words/0: a number does not fit here; it takes a string"},
		{`{"counts":{}}`, "/counts: an object does not fit here; it takes a list"},
		{`{"bytes":[1]}`, "/bytes: a list does not fit here; it takes a string"},
		{`{"map":[]}`, "/map: a list does not fit here; it takes an object"},
		{`{"inner":1}`, "/inner: a number does not fit here; it takes an object"},
		{`{"at":5}`, "/at: a number does not fit here; it takes a string"},
		{`{"count":"1"}`, "/count: a string does not fit here; it takes a whole number"},
		{`{"share":"1"}`, "/share: a string does not fit here; it takes a number"},
		{`{"yes":"true"}`, "/yes: a string does not fit here; it takes true or false"},
		{`{"text":null,"yes":1}`, "/yes: a number does not fit here; it takes true or false"},
	} {
		if err := Unmarshal([]byte(tt.in), &d); !errors.Is(err, ErrJSON) || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.in, err, tt.want)
		}
	}
}
