//go:build !linux

package hostile

// Cases returns no case: they run on Linux.
func Cases() []Case { return nil }

func runAll(t tester, _ Setup, _ bool) {
	t.Helper()
	t.Fatalf("hostile: the cases run on Linux alone")
}
