package skill

import "errors"

func mkfifo(string) error { return errors.New("there are no fifos here") }
