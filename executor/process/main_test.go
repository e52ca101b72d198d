//go:build linux

package process_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(hostEnv); dir != "" {
		host(dir)
	}
	os.Exit(m.Run())
}

// checkGoroutines holds that no run left a goroutine. Before were there before.
func checkGoroutines(t *testing.T, before goleak.Option) {
	t.Helper()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
