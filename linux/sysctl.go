package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadSysctl returns the value of a sysctl without its line end. Those under
// "net" are of the current network namespace.
func ReadSysctl(name string) (string, error) {
	value, err := os.ReadFile(SysctlPath(name))
	if err != nil {
		return "", failedWith(err, noSysctl, "read sysctl %s", name)
	}
	return strings.TrimSpace(string(value)), nil
}

// WriteSysctl sets a sysctl. Those under "net" are of the current network
// namespace.
func WriteSysctl(name, value string) error {
	// not O_CREATE: a wrong name shall be ENOENT
	file, err := os.OpenFile(SysctlPath(name), os.O_WRONLY, 0)
	if err != nil {
		return failedWith(err, noSysctl, "write sysctl %s", name)
	}
	defer file.Close()
	_, err = file.WriteString(value)
	if errors.Is(err, unix.EPERM) {
		// The file was opened: it is the value that is refused, not the user.
		return &Error{Tried: fmt.Sprintf("write %q to sysctl %s", value, name), Err: err,
			Mend: restricted(name)}
	}
	return failedWith(err, "the kernel takes no such value", "write %q to sysctl %s", value, name)
}

func restricted(name string) string {
	const allowed = "net.ipv4.tcp_allowed_congestion_control"
	if SysctlPath(name) == SysctlPath("net.ipv4.tcp_congestion_control") {
		return "write reno, or first allow it to all namespaces by adding it to " + allowed +
			" of the machine"
	}
	return "the kernel takes this value only outside of network namespaces"
}

const noSysctl = "check the name; this kernel may lack what it belongs to"

// SysctlPath returns the file of a sysctl. As with sysctl(8), a name whose
// first separator is a slash keeps its dots: "net/ipv4/conf/eth0.100/rp_filter".
func SysctlPath(name string) string {
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '.' {
		name = strings.NewReplacer(".", "/", "/", ".").Replace(name)
	}
	return filepath.Join("/proc/sys", filepath.Clean("/"+name))
}
