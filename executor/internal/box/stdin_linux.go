package box

import "os"

// Stdin returns what [Input] does.
func (r *Run) Stdin(data []byte) (*os.File, error) { return Input(data) }
