// Command tracon runs the scripts of agent skills, only when every gate says yes.
package main

import (
	"os"

	"github.com/tracon-go/tracon/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
