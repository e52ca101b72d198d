// Package ownfile keeps small files of the program's own beside the database:
// keys, marks, locks. What it has written is on the disk when it returns.
package ownfile
