package linux

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Memory returns how many bytes of memory the machine has.
func Memory() (uint64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("ask for the memory of this machine: %w", err)
	}
	return uint64(info.Totalram) * uint64(info.Unit), nil
}
