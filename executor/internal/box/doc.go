// Package box holds what the executors of this host share: the private folders
// in which runs are staged, the layout of a run, standard input and output, the
// collection of output files, the cgroup of a run, and the removal of what a
// script left.
//
// An [Instance] is the folder of one executor. [Instance.NewRun] makes a [Run]
// in it, [Run.Lay] lays a request out, [Run.Collect] reads what the script
// wrote, and [Run.Remove] leaves nothing. Everything that a script could have
// touched is reached through descriptors of ours, one path element at a time,
// and never through a link.
package box
