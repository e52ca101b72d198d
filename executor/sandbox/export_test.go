//go:build linux && (amd64 || arm64)

package sandbox

// LetGo removes the boxes that were made ahead, and returns when they are gone.
func LetGo(e *Executor) {
	e.ahead.letGo()
	e.ahead.mu.Lock()
	defer e.ahead.mu.Unlock()
	e.ahead.closed = false
}

// Settle has every box wait for its call, as one that was made ahead does.
func Settle(e *Executor) { e.setup.settle = true }

// Served returns how many calls a box was served that had been made ahead.
func Served(e *Executor) int {
	e.ahead.mu.Lock()
	defer e.ahead.mu.Unlock()
	return e.ahead.served
}

// Made returns when no box is being made ahead or let go of. No run may be under way.
func Made(e *Executor) { e.ahead.work.Wait() }

// Waiting returns the first processes of the boxes that wait.
func Waiting(e *Executor) (pids []int) {
	e.ahead.mu.Lock()
	defer e.ahead.mu.Unlock()
	for _, h := range e.ahead.waiting {
		pids = append(pids, h.child.init.Pid)
	}
	return pids
}

// Look has f look at each script's process before the executor does.
func Look(e *Executor, f func(pid int)) {
	look := e.setup.inspect
	e.setup.inspect = func(x *expectation, pid int) (*posture, error) {
		f(pid)
		return look(x, pid)
	}
}
