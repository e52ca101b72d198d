package strictjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

type folding struct {
	SourceText string    `json:"sourceText"`
	Count      int       `json:"count"`
	In         *foldedIn `json:"in"`
	List       []foldedIn
	Named      []foldedIn `json:"named"`
}

type foldedIn struct {
	ExitCode *int `json:"exitCode"`
}

var manyMembers = func() (text string) {
	for i := range 2 * manyNames {
		text += fmt.Sprintf(`,"n%d":1`, i)
	}
	return text
}()

// R28: names are read without regard to ASCII case, duplicates after folding are
// refused, unknown members are ignored; all else is as strict as everywhere.
func TestUnmarshalFolded(t *testing.T) {
	tests := []struct {
		name, in string
		want     string // of SourceText, or after "!" a part of the error
	}{
		{"camel", `{"sourceText":"a","count":1}`, "a"},
		{"Pascal", `{"SourceText":"a","Count":1,"In":{"ExitCode":3}}`, "a"},
		{"upper", `{"SOURCETEXT":"a"}`, "a"},
		{"by escape", `{"\u0053ourcetext":"a"}`, "a"},
		{"unknown members", `{"x":{"y":[1,{"Z":2}]},"sourcetext":"a"}`, "a"},
		{"a member of a member is none of its own", `{"x":{"sourceText":"b"},"sourceText":"a"}`, "a"},
		{"a long s is another name", `{"\u017fourceText":"b","sourceText":"a"}`, "a"},
		{"a dash is another name", `{"source-text":"b","source_text":"c","sourceText":"a"}`, "a"},
		{"twice", `{"sourceText":"a","sourceText":"b"}`, "!stands twice"},
		{"twice in another case", `{"sourceText":"a","SourceText":"b"}`, "!stands twice in its object, but for its case"},
		{"twice within", `{"in":{"exitCode":1,"EXITCODE":2}}`, "!stands twice"},
		{"twice in what is not known", `{"x":{"y":1,"Y":2}}`, "!stands twice"},
		{"an unknown member twice", `{"x":1,"X":2}`, "!stands twice"},
		{"twice, with an object between", `{"x":1,"y":{"z":2},"X":3}`, "!stands twice"},
		{"in two objects", `{"x":{"y":1,"z":{"y":1}},"w":[{"Y":1},{"y":1}],"sourceText":"a"}`, "a"},
		{"in two objects, the first with many", `{"x":{"y":1` + manyMembers + `},"w":{"Y":1},"sourceText":"a"}`, "a"},
		{"twice, in one with many", `{"x":{"y":1` + manyMembers + `,"Y":1}}`, "!stands twice"},
		{"another kind", `{"count":"1"}`, "!count"},
		{"a fraction for a number that has none", `{"count":1.5}`, "!count"},
		{"two values", `{}{}`, "!more than one value"},
		{"half a surrogate", `{"sourceText":"\ud800"}`, "!surrogate"},
		{"not UTF-8", "{\"sourceText\":\"\xff\"}", "!UTF-8"},
		{"too deep", strings.Repeat(`{"x":`, 65) + "1" + strings.Repeat("}", 65), "!nested deeper"},
		{"nothing", ``, "!there is no value"},
		{"a list", `[]`, "!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v folding
			err := UnmarshalFolded([]byte(tt.in), &v, Limits{})
			if part, ok := strings.CutPrefix(tt.want, "!"); ok {
				if err == nil || !errors.Is(err, ErrJSON) || !strings.Contains(err.Error(), part) {
					t.Errorf("got error %v, want one with %q", err, part)
				}
				return
			}
			if err != nil || v.SourceText != tt.want {
				t.Errorf("got %q, %v, want %q", v.SourceText, err, tt.want)
			}
		})
	}
	var v folding
	if err := UnmarshalFolded([]byte(`{"IN":{"EXITCODE":3}}`), &v, Limits{}); err != nil || v.In == nil || v.In.ExitCode == nil || *v.In.ExitCode != 3 {
		t.Errorf("an object within: got %+v, %v", v.In, err)
	}
}

// R28: whatever comes in, the same names are refused and read in every case.
func FuzzUnmarshalFolded(f *testing.F) {
	for _, s := range []string{`{"sourceText":"a"}`, `{"SOURCETEXT":"a","in":{"ExitCode":1}}`, `{"a":1,"A":2}`, `[`, `{"named":[{"exitCode":null}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v folding
		err := UnmarshalFolded(b, &v, Limits{})
		if err != nil {
			if !errors.Is(err, ErrJSON) {
				t.Errorf("%v is no error of this package", err)
			}
			return
		}
		if _, cerr := Canonical(b, Limits{}); cerr != nil {
			t.Errorf("%q is read, and is not strict JSON: %v", b, cerr)
		}
	})
}
