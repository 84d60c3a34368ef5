package linux

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"sextant/linux/facts"
)

// listeners reads the sockets of the current network namespace that wait for packets.
func listeners() []facts.Listener {
	list := []facts.Listener{}
	for _, protocol := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + protocol)
		if err != nil {
			continue // a kernel without the family
		}
		list = append(list, parseListeners(string(text), strings.HasPrefix(protocol, "udp"))...)
	}
	return list
}

// Socket states of /proc/net/tcp and udp (net/tcp_states.h).
const (
	tcpListen = "0A"
	udpBound  = "07"
)

// parseListeners reads the text of /proc/net/tcp and its like:
//
//	sl  local_address rem_address   st ...
//	 0: 0100007F:1F90 00000000:0000 0A ...
func parseListeners(text string, udp bool) []facts.Listener {
	var list []facts.Listener
	waiting := tcpListen
	if udp {
		waiting = udpBound
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != waiting {
			continue
		}
		if address, ok := parseProcAddress(fields[1]); ok {
			list = append(list, facts.Listener{UDP: udp, Address: address})
		}
	}
	return list
}

// parseProcAddress reads an address of 32-bit words in the machine's order, and a port in
// hexadecimal.
func parseProcAddress(text string) (netip.AddrPort, bool) {
	address, port, found := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if !found || err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		if littleEndian {
			slices.Reverse(word)
		}
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip, uint16(number)), ok
}

// agents lists the processes that run "sextant agent" in the network namespace of this thread.
func agents() []facts.Agent {
	list := []facts.Agent{}
	here, err := os.Readlink(threadNetns())
	if err != nil {
		return list
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return list
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		line, readErr := os.ReadFile(filepath.Join(dir, "cmdline"))
		there, linkErr := os.Readlink(filepath.Join(dir, "ns/net"))
		if err != nil || readErr != nil || linkErr != nil || there != here {
			continue
		}
		if file, is := agentFile(bytes.Split(bytes.TrimRight(line, "\x00"), []byte{0})); is {
			list = append(list, facts.Agent{PID: pid, Node: nodeNameIn(dir, file)})
		}
	}
	return list
}

// agentFile tells whether a command line runs an agent, and with which node file.
func agentFile(words [][]byte) (file string, is bool) {
	isAgent := func(w []byte) bool { return string(w) == "agent" }
	if len(words) == 0 || filepath.Base(string(words[0])) != "sextant" ||
		!slices.ContainsFunc(words, isAgent) {
		return "", false
	}
	for i, w := range words {
		word := string(w)
		switch {
		case (word == "-f" || word == "--file") && i+1 < len(words):
			return string(words[i+1]), true
		case strings.HasPrefix(word, "--file="):
			return strings.TrimPrefix(word, "--file="), true
		}
	}
	return "", true
}

// nodeNameIn reads the name in the node file of a process, "" if it can't be read.
func nodeNameIn(proc, file string) string {
	if !filepath.IsAbs(file) {
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		if err != nil {
			return ""
		}
		file = filepath.Join(cwd, file)
	}
	text, err := os.ReadFile(filepath.Join(proc, "root", file))
	if err != nil {
		return ""
	}
	var head struct{ Node string }
	if yaml.Unmarshal(text, &head) != nil {
		return ""
	}
	return head.Node
}

// littleEndian is the order in which this machine keeps words.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
