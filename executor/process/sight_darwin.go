package process

import "github.com/tracon-go/tracon/executor"

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

func (sight) coreFiles() executor.Wall {
	return executor.Wall{Name: "core files", Proof: "this system cannot limit another process", Remedy: "start the host with core files off (ulimit -c 0)"}
}
