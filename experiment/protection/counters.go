package protection

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"sextant/kernel"
)

// counters are what TCP saw at both ends.
type counters struct {
	Duplicates      uint64 `json:"duplicates"`      // segments that the client had already and told so, by DSACK (RFC 2883)
	Retransmissions uint64 `json:"retransmissions"` // of the server
	Timeouts        uint64 `json:"timeouts"`        // of the server
	Undone          uint64 `json:"undone"`          // slow-downs of the server that turned out to be needless
}

func (c counters) minus(o counters) counters {
	return counters{c.Duplicates - o.Duplicates, c.Retransmissions - o.Retransmissions, c.Timeouts - o.Timeouts, c.Undone - o.Undone}
}

func (c counters) plus(o counters) counters {
	return counters{c.Duplicates + o.Duplicates, c.Retransmissions + o.Retransmissions, c.Timeouts + o.Timeouts, c.Undone + o.Undone}
}

func (a *arena) counters() (counters, error) {
	client, err := tcpCounters(a.nodes["hosta"])
	if err != nil {
		return counters{}, err
	}
	server, err := tcpCounters(a.nodes["hostb"])
	if err != nil {
		return counters{}, err
	}
	return counters{
		Duplicates:      client["TCPDSACKOldSent"] + client["TCPDSACKOfoSent"],
		Retransmissions: server["RetransSegs"],
		Timeouts:        server["TCPTimeouts"],
		Undone:          server["TCPFullUndo"] + server["TCPPartialUndo"] + server["TCPDSACKUndo"] + server["TCPLossUndo"],
	}, nil
}

// tcpCounters reads the counters of a namespace's TCP.
func tcpCounters(ns *kernel.Netns) (map[string]uint64, error) {
	values := map[string]uint64{}
	for file, group := range map[string]string{"snmp": "Tcp:", "netstat": "TcpExt:"} {
		if err := readCounters(ns, file, group, values); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// readCounters adds a group of a namespace's counters (proc_net(5)).
func readCounters(ns *kernel.Netns, file, group string, values map[string]uint64) error {
	path := "/proc/thread-self/net/" + file
	var text []byte
	err := ns.Do(func() (err error) {
		text, err = os.ReadFile(path)
		return err
	})
	if err == nil {
		err = parseCounters(string(text), group, values)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// parseCounters reads two lines that begin with the group, the first with names and the second with values. A value of -1, which
// stands for no bound, is left out.
func parseCounters(text, group string, values map[string]uint64) error {
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
	return fmt.Errorf("there are no counters %s; this needs a Linux kernel with procfs mounted", group)
}
