package process

import "github.com/tracon-go/tracon/executor"

const (
	coreProof  = "this system cannot limit another process"
	coreRemedy = "start the host with core files off (ulimit -c 0)"
)

// A sight is what was seen of a process that was started as a script is. Here
// nothing can be seen.
type sight struct{}

func look(int, []string) sight { return sight{} }

func (sight) environment() executor.Wall {
	return executor.Wall{Name: "environment", Stands: true, Proof: "it is built from empty and handed to the start; it cannot be read back here"}
}

func (sight) descriptors() executor.Wall {
	return executor.Wall{Name: "descriptors", Stands: true, Proof: "every other file is opened with close-on-exec; they cannot be counted here"}
}
