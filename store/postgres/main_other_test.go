//go:build !linux

package postgres_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracon-go/tracon/internal/pgserver"
)

func TestMain(m *testing.M) {
	os.Exit(pgserver.Main(m, func() error { return goleak.Find() }))
}
