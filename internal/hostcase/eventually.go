//go:build linux

package hostcase

import "time"

// Eventually returns nil as soon as check does, and its last error after a minute: what
// ends by itself takes its time where a host does other things too.
func Eventually(check func() error) error {
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := check()
		if err == nil || time.Now().After(until) {
			return err
		}
	}
}
