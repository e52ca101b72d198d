package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/internal/config"
)

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each variable that is set for the service or the image is a setting.
func TestDeployedVariablesAreSettings(t *testing.T) {
	known := map[string]bool{}
	for _, s := range config.Settings {
		known[s.Env()] = true
	}
	for _, file := range []string{"tracon.service", "Containerfile"} {
		found := regexp.MustCompile(`\b(TRACON_[A-Z_]+)=`).FindAllStringSubmatch(deployed(t, file), -1)
		if len(found) < 3 {
			t.Errorf("%s sets %d variables", file, len(found))
		}
		for _, m := range found {
			if !known[m[1]] {
				t.Errorf("%s sets %s, which is no setting", file, m[1])
			}
		}
	}
}

// The unit gives the server what the limits of runs need, takes away what it does
// not, and leaves what a box is made of.
func TestUnit(t *testing.T) {
	has := map[string]string{}
	for line := range strings.Lines(deployed(t, "tracon.service")) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(line, "#") {
			has[key] = value
		}
	}
	for key, want := range map[string]string{
		"Type": "notify", "User": "tracon", "Delegate": "yes", "DelegateSubgroup": "host", "KillMode": "mixed", "Restart": "on-failure",
		"ExecReload": "/bin/kill -HUP $MAINPID", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict", "ProtectHome": "yes",
		"StateDirectoryMode": "0700", "UMask": "0077", "StartLimitIntervalSec": "0",
	} {
		if got, ok := has[key]; !ok || got != want {
			t.Errorf("%s=%s, want %q", key, got, want)
		}
	}
	for _, key := range []string{"RestrictNamespaces", "ProtectControlGroups", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectKernelModules", "ProtectProc",
		"ProcSubset", "ProtectClock", "PrivateDevices", "DevicePolicy", "SystemCallFilter", "MemoryDenyWriteExecute", "PrivateUsers"} {
		if value, ok := has[key]; ok {
			t.Errorf("%s=%s takes away what a box is made of", key, value)
		}
	}
}

// The image's program is an ordinary user's, and is told to stop as it should be.
func TestContainerfile(t *testing.T) {
	lines := strings.Split(deployed(t, "Containerfile"), "\n")
	for _, want := range []string{"USER 10001", "STOPSIGNAL SIGTERM", `ENTRYPOINT ["tracon"]`, `CMD ["serve"]`} {
		if !slices.Contains(lines, want) {
			t.Errorf("it has no line %q", want)
		}
	}
	if !strings.Contains(deployed(t, "Containerfile"), "CGO_ENABLED=0 go build -trimpath") {
		t.Error("the binary is not static")
	}
}

// analyze returns the program that checks units. A machine without it skips the test,
// and fails it where everything is required.
func analyze(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip("systemd-analyze is not installed (Debian: apt-get install systemd)")
	}
	return path
}

// Systemd itself takes the unit. What it does not know is of a newer version.
func TestUnitIsVerified(t *testing.T) {
	program := analyze(t)
	file := filepath.Join(t.TempDir(), "tracon.service")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(deployed(t, "tracon.service"), "ExecStart=/usr/local/bin/tracon", "ExecStart="+self, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "verify", file).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, file) && !strings.Contains(line, "'DelegateSubgroup'") {
			t.Errorf("systemd says: %s", line)
		}
	}
}
