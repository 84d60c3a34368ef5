// Package datapath loads, attaches and pins the eBPF programs of all roles, and gives typed access
// to their maps.
//
// Loading has two steps, so that no packet sees half of a change. OpenEdge, OpenHost, OpenHeadend,
// OpenMerge and OpenStrays build a program with all its tables beside the one that is running;
// Commit switches the interfaces over, one atomic link update each, and pins programs, links and
// maps under the instance's directory. Whatever ends the process between the two leaves the old
// program running. TakeSnapshot holds what is pinned before a Commit, so that one that fails can be
// undone. Counters and learnt state are taken over from the maps pinned there; configuration tables
// are always new.
//
// What the programs do is specified in docs/reference/dataplane.md.
package datapath
