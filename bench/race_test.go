//go:build race

package bench

// raceDetector: memory is several times what it is without it, and so is time.
const (
	raceDetector = true
	floodEach    = 25 // calls of one tenant
)
