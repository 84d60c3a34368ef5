package linux

// The pure parts of finding a file system, and of reading counters.
var (
	MountPoints = mountPoints
	AddCounters = addCounters
)
