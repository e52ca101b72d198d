//go:build !linux

package main

import "os"

// A machine's kernel is Linux.
func main() { os.Exit(2) }
