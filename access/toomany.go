package access

import (
	"fmt"
	"time"
)

// A TooManyError is the error of a credential that was not looked at, since too many from
// the same place did not hold. It says nothing of the credential.
type TooManyError struct {
	After time.Duration // when the next may come
}

// Error implements error.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("access: too many credentials from there did not hold; the next may come in %s", e.After)
}
