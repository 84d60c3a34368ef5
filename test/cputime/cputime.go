// Package cputime measures what benchmarks take on a machine that has other things to do.
package cputime

import (
	"syscall"
	"time"
)

// Used is the time of processors that this process has taken so far; 0 if the kernel does not tell.
func Used() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Since is the time of processors that this process has taken since begun.
func Since(begun time.Duration) time.Duration { return Used() - begun }
