package main

import (
	"bufio"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events string
		ok     bool
		want   []string // in what is printed
		not    []string
		skips  string
	}{
		{
			name: "passed",
			events: `{"Action":"output","Package":"a","Test":"TestX","Output":"noise\n"}
{"Action":"pass","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass","Package":"a"}
`,
			ok:   true,
			want: []string{"ok  \ta\t0.1s\n", "tests: 1 ok, 0 not, 0 left out\n"},
			not:  []string{"noise", "PASS"},
		},
		{
			name: "a failed test shows all that it wrote",
			events: `{"Action":"output","Package":"a","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"a","Test":"TestX","Output":"x_test.go:1: got 1, want 2\n"}
{"Action":"fail","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}
{"Action":"fail","Package":"a"}
`,
			want: []string{"got 1, want 2\n", "FAIL\ta\t0.1s\n", "0 ok, 1 not"},
			not:  []string{"=== RUN"},
		},
		{
			name: "a test that never ended shows what it wrote",
			events: `{"Action":"pass","Package":"a","Test":"TestW"}
{"Action":"output","Package":"a","Test":"TestX","Output":"waiting\n"}
{"Action":"fail","Package":"a"}
`,
			want: []string{"waiting\n"},
		},
		{
			name: "a skipped test is named with its reason",
			events: `{"Action":"pass","Package":"a","Test":"TestW"}
{"Action":"output","Package":"a","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"a","Test":"TestX","Output":"    x_test.go:3: ruby is missing\n"}
{"Action":"output","Package":"a","Test":"TestX","Output":"--- SKIP: TestX (0.00s)\n"}
{"Action":"skip","Package":"a","Test":"TestX"}
{"Action":"skip","Package":"b"}
`,
			ok:    true,
			want:  []string{"skipped a TestX: x_test.go:3: ruby is missing\n", "1 ok, 0 not, 1 left out"},
			skips: "a TestX\n",
		},
		{
			name: "a package that does not build",
			events: `{"Action":"pass","Package":"a","Test":"TestW"}
{"ImportPath":"b","Action":"build-output","Output":"b/b.go:1:1: undefined: x\n"}
{"ImportPath":"b","Action":"build-fail"}
`,
			want: []string{"undefined: x\n"},
		},
		{name: "no test at all", events: `{"Action":"skip","Package":"a"}` + "\n", want: []string{"no test ran\n"}},
		{name: "nothing", want: []string{"no test ran\n"}},
		{name: "a line that is no event", events: "go: no such module\n", want: []string{"go: no such module\n", "no test ran\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			tally := newTally(bufio.NewWriter(&b))
			if err := tally.read(strings.NewReader(tc.events)); err != nil {
				t.Fatal(err)
			}
			if got := tally.close(); got != tc.ok {
				t.Errorf("got %v, want %v", got, tc.ok)
			}
			for _, want := range tc.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", &b, want)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(b.String(), not) {
					t.Errorf("got\n%s\nwant no %q in it", &b, not)
				}
			}
			if got := string(tally.skipList()); got != tc.skips {
				t.Errorf("got the skipped tests %q, want %q", got, tc.skips)
			}
		})
	}
}
