package linux

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// TCPCounters reads the counters of the namespace's TCP by their names, like "OutRsts" or
// "TCPTimeouts": the groups Tcp and TcpExt of proc_net(5). They count since the namespace was made.
// One that is named and not there is an error; all others that there are come along.
func (n *Netns) TCPCounters(names ...string) (map[string]uint64, error) {
	values := map[string]uint64{}
	for file, group := range map[string]string{"snmp": "Tcp:", "netstat": "TcpExt:"} {
		path := "/proc/thread-self/net/" + file
		var text []byte
		err := n.Do(func() (err error) {
			text, err = os.ReadFile(path)
			return err
		})
		if err == nil {
			err = addCounters(values, string(text), group)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	for _, name := range names {
		if _, ok := values[name]; !ok {
			return nil, fmt.Errorf("read TCP's counters: this kernel has none that is called %s",
				name)
		}
	}
	return values, nil
}

// addCounters reads two lines that begin with the group, the first with names and the second with
// values. A value of -1, which stands for no bound, is left out.
func addCounters(values map[string]uint64, text, group string) error {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != group {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names[1:min(len(names), len(fields))] {
			if value, err := strconv.ParseUint(fields[i+1], 10, 64); err == nil {
				values[name] = value
			}
		}
		return nil
	}
	return fmt.Errorf("there are no counters %s; this needs a Linux kernel with procfs mounted",
		group)
}
