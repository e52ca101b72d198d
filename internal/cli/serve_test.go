package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/daemon"
)

// The first key is printed on a terminal alone; what is printed elsewhere is a log, so
// there it lies in a file that is its owner's.
func TestFirstKeyIsHandedOver(t *testing.T) {
	for _, tt := range []struct {
		name              string
		terminal, json    bool
		printed, intoFile bool
	}{
		{name: "a terminal", terminal: true, printed: true},
		{name: "a pipe", intoFile: true},
		{name: "JSON on a terminal", terminal: true, json: true, intoFile: true},
		{name: "JSON in a pipe", json: true, intoFile: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			secret := access.NewSecret()
			data := t.TempDir()
			var out, errs bytes.Buffer
			a := &app{out: &out, err: &errs, outTTY: tt.terminal, json: tt.json}
			if err := a.started(data, daemon.Started{Address: "http://127.0.0.1:1", First: &secret}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), secret.Reveal()); got != tt.printed {
				t.Errorf("it is printed: %v, want %v: %s", got, tt.printed, out.String())
			}
			file := filepath.Join(data, firstKeyFile)
			text, err := os.ReadFile(file)
			if tt.intoFile != (err == nil) || tt.intoFile && string(text) != secret.Reveal()+"\n" {
				t.Errorf("the file: %v, want one: %v", err, tt.intoFile)
			}
			if tt.intoFile && !strings.Contains(out.String(), firstKeyFile) {
				t.Errorf("nobody is told of the file: %s", out.String())
			}
			if strings.Contains(errs.String(), secret.Reveal()) {
				t.Error("it stands on standard error, where the log is")
			}
		})
	}
}
