// Package linux holds the system calls around eBPF that Sextant needs:
// network namespaces, sysctls, offloads of interfaces, the bpf and cgroup2
// file systems, and the XDP program that does nothing. It gathers the facts
// about a machine by which package doctor judges ([Facts]), and describes it
// for support ([Describe]).
//
// Each function does one request and says in its error what was tried, on
// what, and what would make it work. Functions that act on "the current
// network namespace" mean that of the calling thread: call them inside
// [Netns.Do] to act elsewhere.
package linux
