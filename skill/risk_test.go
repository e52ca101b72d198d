package skill

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

func signsOf(t testing.TB, p, text string) []Diagnostic {
	t.Helper()
	b, err := bundle.New([]bundle.File{{Path: p, Data: []byte(text)}}, nil, bundle.Limits{})
	must(t, err)
	return signs(lookAtAll(b))
}

// Each sign is told with its line, as information; what only looks like one is not.
func TestSigns(t *testing.T) {
	tests := []struct {
		file, line string
		want       string // codes without "risk-"
	}{
		{"a.py", "import requests", "network"},
		{"a.py", "import os, socket", "network"},
		{"a.py", "from urllib.request import urlopen", "network"},
		{"a.py", "    import http.client", "network"},
		{"a.py", "r, w = await asyncio.open_connection(h, p)", "network"},
		{"a.py", "import urllib3x", ""},
		{"a.py", "requests = []", ""},
		{"a.py", "# import requests", ""},
		{"a.py", "import subprocess", "subprocess"},
		{"a.py", "out = subprocess.run(['ls'])", "subprocess"},
		{"a.py", "os.system('ls')", "subprocess"},
		{"a.py", "os.execvp('ls', ['ls'])", "subprocess"},
		{"a.py", "os.path.join(a, b)", ""},
		{"a.py", "x = eval(text)", "eval"},
		{"a.py", "exec (text)", "eval"},
		{"a.py", "pattern = re.compile('x')", ""},
		{"a.py", "cursor.exec(x)", ""},
		{"a.py", "evaluate(x)", ""},
		{"a.py", "m = __import__(name)", "eval"},
		{"a.py", "pickle.loads(data)", "eval"},
		{"a.py", "key = os.environ['KEY']", "environment"},
		{"a.py", "os.getenv('KEY')", "environment"},
		{"a.py", "from os import environ", "environment"},
		{"a.py", "eval(os.environ['X'])", "environment eval"},
		{"a.js", "const http = require('node:http')", "network"},
		{"a.js", "import axios from 'axios'", "network"},
		{"a.mjs", "await fetch(url)", "network"},
		{"a.js", "prefetch(url)", ""},
		{"a.js", "const { execSync } = require('child_process')", "subprocess"},
		{"a.js", "cp.execSync('ls')", "subprocess"},
		{"a.js", "/x/.exec(text)", ""},
		{"a.js", "new Function('return 1')()", "eval"},
		{"a.js", "eval(x)", "eval"},
		{"a.ts", "const key = process.env.KEY", "environment"},
		{"a.js", "// eval(x)", ""},
		{"a.js", "process.exit(1)", ""},
		{"a.sh", "curl -s https://example.com", "network"},
		{"a.sh", "x=$(wget -qO- \"$1\")", "network"},
		{"a.sh", "cat x | /usr/bin/nc host 1", "network"},
		{"a.sh", "sudo -n curl x", "subprocess network"},
		{"a.sh", "if ! git clone x; then", "network"},
		{"a.sh", "exec 3<>/dev/tcp/host/80", "network"},
		{"a.sh", "echo curl", ""},
		{"a.sh", "my-curl x", ""},
		{"a.sh", "# curl x", ""},
		{"a.sh", "ls # curl", ""},
		{"a.sh", "python3 x.py", "subprocess"},
		{"a.sh", "eval \"$x\"", "eval"},
		{"a.sh", ". ./lib.sh", "eval"},
		{"a.sh", "./lib.sh", ""},
		{"a.sh", "echo \"$API_TOKEN\"", "environment"},
		{"a.sh", "echo ${AWS_SECRET_ACCESS_KEY}", "environment"},
		{"a.sh", "printenv", "environment"},
		{"a.sh", "echo $HOME", ""},
		{"a.sh", "LANG=C sort x", ""},
		{"a.sh", "echo x | base64 -d", "encoded"},
		{"run", "#!/bin/sh\ncurl x", "network"},
		{"a.rb", "system('ls')", ""}, // no lexicon

		{"a.py", "x = '" + strings.Repeat("aB3dE6gH9k+pQ2rS5tUv", 10) + "'", "encoded"},
		{"a.py", "x = '" + strings.Repeat("0123456789abcdef", 10) + "'", "encoded"},
		{"a.py", "x = '" + strings.Repeat(`\x41`, 40) + "'", "encoded"},
		{"SKILL.md", strings.Repeat("aB3dE6gH9k+pQ2rS5tUv", 10), "encoded"},
		{"a.py", "x = '" + strings.Repeat("0123456789abcdef", 8) + "'", ""}, // a SHA-512
		{"a.py", "# " + strings.Repeat("-", 300), ""},
		{"a.md", strings.Repeat("abcdefgh", 40), ""},
		{"a.md", "see " + strings.Repeat("path/to/", 30), ""},
		{"a.md", wrapped(600), "encoded"},
		{"a.md", wrapped(150), ""},

		{"a.py", "іmport os", "mixed-scripts"}, // a Cyrillic і
		{"SKILL.md", "Pay with раypal.", "mixed-scripts"},
		{"SKILL.md", "Αdmin", "mixed-scripts"}, // a Greek Α
		{"SKILL.md", "Δx, μm, 日本語abc, Привет, naïve, Größe, файл_name", ""},
		{"a.py", "𝐞𝐯𝐚𝐥(x)", "mixed-scripts"},
		{"a.py", "ｅｖａｌ(x)", "mixed-scripts"},
		{"a.md", "ＡＢＣ", ""}, // usual in Japanese
		{"SKILL.md", "a\u200bb", "invisible"},
		{"SKILL.md", "a\u202eb", "invisible"},
		{"SKILL.md", "a\u200eb", "invisible"},
		{"SKILL.md", "a\U000e0041\U000e0042", "invisible"},
		{"SKILL.md", "a\ufe01\ufe02", "invisible"},
		{"SKILL.md", "☺\ufe01\ufe02", "invisible"},
		{"SKILL.md", "a\U000e0101", "invisible"},
		{"SKILL.md", "a\u00adb", "invisible"},
		{"SKILL.md", "a\u3164b", "invisible"},
		{"SKILL.md", "a\u2028b", "invisible"},
		{"SKILL.md", "a\u200db", "invisible"},
		{"SKILL.md", "a\uFEFFb", "invisible"},
		{"SKILL.md", "\uFEFFa", ""},
		{"SKILL.md", "a \x1b[31m", "invisible"},
		{"SKILL.md", "👩\u200d💻 ❤\ufe0f 1\ufe0f⃣ می\u200cخواهم क्\u200dष 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", ""},
		{"tracon.yaml", "# a\u200bb", "invisible"},
		{"data.bin", "a\u200bb\x00", ""},
	}
	for _, tt := range tests {
		t.Run(tt.file+" "+visible(clip(tt.line, 40)), func(t *testing.T) {
			text, line := "\n"+tt.line+"\n", 2
			if strings.HasPrefix(tt.line, "\uFEFF") || strings.HasPrefix(tt.line, "#!") {
				text = tt.line
			}
			var got []string
			for _, d := range signsOf(t, tt.file, text) {
				if !d.Risk() || d.Severity != Note || d.Path != tt.file || d.Line != line || d.Remedy == "" || strings.ContainsFunc(d.Text, hidden) {
					t.Errorf("got %+v", d)
				}
				got = append(got, strings.TrimPrefix(d.Code, "risk-"))
			}
			slices.Sort(got)
			want := strings.Fields(tt.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// wrapped is base64 in lines, of n bytes.
func wrapped(n int) string {
	var data []byte
	for d := bundle.Sum(nil); len(data) < n; d = bundle.Sum(d[:]) {
		data = append(data, d[:]...)
	}
	text := base64.StdEncoding.EncodeToString(data[:n])
	var b strings.Builder
	for len(text) > 76 {
		b.WriteString(text[:76] + "\n")
		text = text[76:]
	}
	return b.String() + text
}

// Of one sign in one file five lines are told, and how many more there are; of a
// whole skill some hundred.
func TestSignsAreBounded(t *testing.T) {
	var got []string
	for _, d := range signsOf(t, "a.py", strings.Repeat("os.system(x)\n", 100)) {
		got = append(got, fmt.Sprint(d.Line, " ", d.Text))
	}
	want := []string{"1 it starts other programs (os.system)", "2 it starts other programs (os.system)", "3 it starts other programs (os.system)",
		"4 it starts other programs (os.system)", "5 it starts other programs (os.system)", "0 it starts other programs in 95 more lines"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var files []bundle.File
	for i := range 2000 {
		files = append(files, bundle.File{Path: fmt.Sprintf("a%d.py", i), Data: []byte("eval(x)\n")})
	}
	b, err := bundle.New(files, nil, bundle.Limits{})
	must(t, err)
	all := signs(lookAtAll(b))
	if len(all) != maxSigns+1 || all[maxSigns].Code != "risk-more" || !strings.Contains(all[maxSigns].Text, "1600 more") {
		t.Errorf("got %d signs, the last %v", len(all), all[len(all)-1])
	}
}
