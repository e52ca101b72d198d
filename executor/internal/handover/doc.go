// Package handover turns an admitted request into the run that another host is
// asked for, and that host's answer into a result. The executors that send scripts
// away share it; how the two travel is theirs.
package handover
