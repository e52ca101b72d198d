// Command agent is the first process in a micro-VM, and all of its user land but the
// runtime's: it starts the machine, takes one order from the host over a serial port,
// lays the files out, starts the script behind walls of its own, sends what comes of
// it, and waits to be killed with the machine.
//
// It trusts the host, and the script with nothing. Where it fails it says at which
// step, or ends, and the kernel with it. build.sh makes the copy of it that the
// executor has within itself.
package main
