//go:build !race

package bench

const (
	raceDetector = false
	floodEach    = 100 // calls of one tenant
)
