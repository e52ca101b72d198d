//go:build !linux

package hostile

// Cases returns no case: they run on Linux.
func Cases() []Case { return nil }

// HarmlessCases returns no case: they run on Linux.
func HarmlessCases() []Case { return nil }

type testCase struct{}

func harmlessCases() []testCase { return nil }
func hurtfulCases() []testCase  { return nil }

func runAll(t tester, _ Setup, _ []testCase, _ bool) {
	t.Helper()
	t.Fatalf("hostile: the cases run on Linux alone")
}
