package linkstate

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"sextant/packet/srv6"
	"sextant/te/topology"
)

// FRR is where daemons of FRRouting answer, and what is asked of them.
type FRR struct {
	Directory string     // of their sockets: /run/frr
	Block     srv6.Block // a router's SID is the locator of this block that it announces
}

// askPatience is how long a daemon may take to print its database.
const askPatience = 5 * time.Second

// OSPF6 reads the topology from ospf6d: OSPFv3.
func (f FRR) OSPF6(ctx context.Context) (*topology.Graph, []string, error) {
	var answers [4][]byte
	for i, what := range []string{"router", "network", "intra-prefix", "as-external"} {
		var err error
		if answers[i], err = f.ask(ctx, "ospf6d",
			"show ipv6 ospf6 database "+what+" detail json"); err != nil {
			return nil, nil, err
		}
	}
	return OSPF6("ospf6", OSPF6Database{Routers: answers[0], Networks: answers[1],
		Prefixes: answers[2], External: answers[3]}, f.Block)
}

// ISIS reads the topology from isisd. What it prints as JSON holds one LSP only, and its traffic
// engineering database no link without IPv4 addresses (8.4), so its text is read.
func (f FRR) ISIS(ctx context.Context) (*topology.Graph, []string, error) {
	database, err := f.ask(ctx, "isisd", "show isis database detail")
	if err != nil {
		return nil, nil, err
	}
	hostnames, err := f.ask(ctx, "isisd", "show isis hostname")
	if err != nil {
		return nil, nil, err
	}
	return ISIS("isis", ISISDatabase{Text: database, Hostnames: hostnames}, f.Block)
}

// ask gives a daemon a command as FRR's shell does: the command with a zero octet behind it; the
// answer ends in three, and a status.
func (f FRR) ask(ctx context.Context, daemon, command string) ([]byte, error) {
	path := filepath.Join(f.Directory, daemon+".vty")
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w; does it run, and is this its directory?", daemon, err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("ask %s: %w", daemon, err)
		}
	}
	if _, err := io.WriteString(conn, command+"\x00"); err != nil {
		return nil, fmt.Errorf("ask %s: %q: %w", daemon, command, err)
	}
	answer, status, err := readAnswer(bufio.NewReader(conn))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s: %q: %w", daemon, command, err)
	case status != 0:
		return nil, fmt.Errorf("ask %s: %q is refused with status %d: %s", daemon, command, status,
			bytes.TrimSpace(answer))
	}
	return answer, nil
}

// mostAnswer bounds an answer, in octets: the database of a hundred thousand links.
const mostAnswer = 64 << 20

// readAnswer reads up to three zero octets, and the status behind them.
func readAnswer(r *bufio.Reader) (answer []byte, status byte, err error) {
	end := []byte{0, 0, 0}
	for !bytes.HasSuffix(answer, end) {
		octet, err := r.ReadByte()
		if err != nil {
			return nil, 0, err
		}
		if answer = append(answer, octet); len(answer) > mostAnswer {
			return nil, 0, fmt.Errorf("the answer is longer than %d bytes", mostAnswer)
		}
	}
	status, err = r.ReadByte()
	return answer[:len(answer)-len(end)], status, err
}
