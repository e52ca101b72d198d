package holder

// A child of a Windows process has a lock of its parent's only where it was given it.

func self() string { return "" }

func dead(string) bool { return false }
