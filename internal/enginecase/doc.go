// Package enginecase starts container engines, for the tests and benchmarks of what
// drives them: Docker and Podman, as they are installed, each apart from all others of
// the machine.
package enginecase
