// Package runnercase has a runner service in another process, and the suites of
// executors through it, for the tests of the executors that send scripts away. A test
// binary is started once more for each process; see [Main].
package runnercase
