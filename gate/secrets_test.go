package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/gate"
)

// O09, T14: what can be marked as secret; what stands for a hidden value cannot be
// written back as one.
func TestPolicySecrets(t *testing.T) {
	env := map[string]string{"TOKEN": "12345678", "SHORT": "1234567", "MASK": "[secret MASK]"}
	for _, tt := range []struct {
		name    string
		secrets []string
		want    string // in the error; empty: it holds
	}{
		{"none", nil, ""},
		{"one", []string{"TOKEN"}, ""},
		{"not in the environment", []string{"OTHER"}, "no variable"},
		{"twice", []string{"TOKEN", "TOKEN"}, "twice"},
		{"too short", []string{"SHORT"}, "ordinary text"},
		{"the mask", []string{"MASK"}, "write the value itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := gate.Policy{Environment: env, Secrets: tt.secrets}.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, gate.ErrPolicy) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "1234567") {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
	p := gate.Policy{Environment: env, Secrets: []string{"TOKEN"}}
	if shown := gate.HideSecrets(p).Environment; shown["TOKEN"] != "[secret TOKEN]" || shown["SHORT"] != "1234567" || p.Environment["TOKEN"] != "12345678" {
		t.Errorf("shown %v, kept %v", shown, p.Environment)
	}
}
