//go:build race

package bench

// raceDetector: memory is several times what it is without it.
const raceDetector = true
