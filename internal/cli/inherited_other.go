//go:build !linux

package cli

// keepInherited does nothing: the posture tells of descriptors that a script would have.
func keepInherited() {}
