package kernel

// MountPoints is the pure part of finding a file system.
var MountPoints = mountPoints
