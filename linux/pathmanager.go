package linux

import "cmp"

// Linux 6.15 names path managers; before, they have numbers.
const (
	pathManagerName   = "net.mptcp.path_manager"
	pathManagerNumber = "net.mptcp.pm_type"
)

// pathManagerSysctl is the sysctl that says who manages the paths of MPTCP connections that are
// opened from now on in this network namespace, with its value for a process in user space.
func pathManagerSysctl() (name, userspace string) {
	if _, err := ReadSysctl(pathManagerName); err == nil {
		return pathManagerName, "userspace"
	}
	return pathManagerNumber, "1"
}

// PathManager is who manages the paths of MPTCP connections that are opened from now on, as the
// kernel writes it, and whether that is a process in user space.
func PathManager() (manager string, userspace bool, err error) {
	name, wanted := pathManagerSysctl()
	manager, err = ReadSysctl(name)
	return manager, manager == wanted, err
}

// SetPathManager makes a manager, as PathManager returned it, that of connections that are opened
// from now on; "": a process in user space.
func SetPathManager(manager string) error {
	name, userspace := pathManagerSysctl()
	manager = cmp.Or(manager, userspace)
	return WriteSysctl(name, manager)
}
