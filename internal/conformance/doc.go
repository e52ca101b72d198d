// Package conformance runs the suites of executor/executortest against an
// executor where no test is: for an operator who wants to know what holds on a
// host. It links no package testing, and none of the cases by which a host could
// suffer.
package conformance
