// Package serverload reads the load of servers, for acceptance policies that decide by more than
// the number of connections.
//
// A [Monitor] asks the sources of a host's services again and again, and tells what they say; the
// agent hands that to the data plane. A source is a function from nothing to a number, in a file of
// its own: Apache's status page, a number that the application keeps in memory, the pressure on the
// CPUs.
package serverload
