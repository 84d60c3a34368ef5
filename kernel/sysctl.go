package kernel

import (
	"os"
	"path/filepath"
	"strings"
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
	file, err := os.OpenFile(SysctlPath(name), os.O_WRONLY, 0) // not O_CREATE: a wrong name shall be ENOENT
	if err != nil {
		return failedWith(err, noSysctl, "write sysctl %s", name)
	}
	defer file.Close()
	_, err = file.WriteString(value)
	return failedWith(err, "the kernel takes no such value", "write %q to sysctl %s", value, name)
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
