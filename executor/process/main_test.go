//go:build linux

package process_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracon-go/tracon/internal/hostcase"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(hostEnv); dir != "" {
		host(dir)
	}
	code := m.Run()
	if left := hostcase.Children(); len(left) > 0 {
		fmt.Printf("B3: after all tests there are processes that this one has started: %q\n", left)
		code = 1
	}
	os.Exit(code)
}

// checkGoroutines holds that no run left a goroutine. Before were there before.
func checkGoroutines(t *testing.T, before goleak.Option) {
	t.Helper()
	if err := hostcase.Eventually(func() error { return goleak.Find(before) }); err != nil {
		t.Error(err)
	}
}
