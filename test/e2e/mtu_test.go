package e2e_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/lab"
)

const (
	transferBytes = 10_000_000
	transfers     = 6               // at once, of each kind and family
	transferTime  = 2 * time.Minute // on a machine that others use too
)

var transferAddresses = map[string]string{"ipv6": "[2001:db8:80::80]:7", "ipv4": "198.51.100.80:7"}

// Where some link is narrower than others, every byte still arrives, both ways and over both
// families: errors of routers reach the host which has the connection, wherever in the chain it is,
// and the edge says what does not fit inside.
func TestPathMTU(t *testing.T) {
	needsRoot(t)
	for _, test := range []struct {
		name              string
		client, edge, web int
		outcome           string // of the edge, which counts what was told
	}{
		{"clients", 1280, 1500, 1500, ""},
		{"edge", 1500, 1400, 1500, "too_big_answered"},
		{"servers", 1500, 1500, 1400, "translated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := upMTU(t, strings.NewReplacer("CLIENT", fmt.Sprint(test.client), "EDGE",
				fmt.Sprint(test.edge), "WEB", fmt.Sprint(test.web)))
			content := serveTransfers(t, l)
			checkTransfers(t, l, content)
			checkFragments(t, l, content)
			checkPing(t, l)
			checkMTUCounters(t, l, test.outcome)
		})
	}
}

func upMTU(t *testing.T, mtus *strings.Replacer) *lab.Lab {
	t.Helper()
	text, err := os.ReadFile("testdata/mtu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := lab.Parse("mtu.yaml",
		[]byte(strings.ReplaceAll(mtus.Replace(string(text)), "NAME", newName())))
	if err != nil {
		t.Fatal(err)
	}
	return bringUp(t, spec, nil)
}

// serveTransfers has all servers send some content, and then read as much and answer with its
// checksum.
func serveTransfers(t *testing.T, l *lab.Lab) (content []byte) {
	t.Helper()
	content, err := io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{2}), transferBytes))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"web1", "web2", "web3"} {
		inside(t, l, node, func() error {
			listener, err := net.Listen("tcp", ":7")
			if err != nil {
				return err
			}
			t.Cleanup(func() { listener.Close() })
			for _, address := range transferAddresses {
				if err := serveDatagrams(t, address); err != nil {
					return err
				}
			}
			go func() {
				for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
					go serveTransfer(conn, content)
				}
			}()
			return nil
		})
	}
	return content
}

func serveTransfer(conn net.Conn, content []byte) {
	defer conn.Close()
	if _, err := conn.Write(content); err != nil {
		return
	}
	received := make([]byte, len(content))
	if _, err := io.ReadFull(conn, received); err == nil {
		sum := sha256.Sum256(received)
		conn.Write(sum[:])
	}
}

// checkTransfers downloads and uploads over several connections at once, so that some hosts are
// busy and pass connections on.
func checkTransfers(t *testing.T, l *lab.Lab, content []byte) {
	t.Helper()
	var all []net.Conn // before the first is over, so that two are at one host
	for _, address := range transferAddresses {
		for range transfers {
			inside(t, l, "client", func() error {
				conn, err := net.DialTimeout("tcp", address, transferTime)
				all = append(all, conn)
				return err
			})
		}
	}
	var over sync.WaitGroup
	for _, conn := range all {
		over.Go(func() {
			if err := transfer(conn, content); err != nil {
				t.Errorf("%s: %v", conn.RemoteAddr(), err)
			}
		})
	}
	over.Wait()
}

func transfer(conn net.Conn, content []byte) error {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(transferTime))
	received := make([]byte, len(content))
	if n, err := io.ReadFull(conn, received); err != nil {
		return fmt.Errorf("download, after %d bytes: %w", n, err)
	}
	want := sha256.Sum256(content)
	if sha256.Sum256(received) != want {
		return errors.New("download: other bytes than the server's")
	}
	if _, err := conn.Write(content); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	var sum [sha256.Size]byte
	if _, err := io.ReadFull(conn, sum[:]); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	if sum != want {
		return errors.New("upload: the server has other bytes")
	}
	return nil
}

// checkPing: the edge answers for the VIPs, up to the size that fits.
func checkPing(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, address := range []string{"2001:db8:80::80", "198.51.100.80"} {
		for _, size := range []string{"0", "56", "1000"} {
			cmd := exec.CommandContext(t.Context(), "ping", "-c", "3", "-i", "0.1", "-W", "10",
				"-s", size, address)
			var out strings.Builder
			cmd.Stdout = &out
			if err := l.Exec("client", cmd); err != nil || !strings.Contains(out.String(),
				" 0% packet loss") {
				t.Errorf("ping %s of %s bytes: %v\n%s", address, size, err, &out)
			}
		}
	}
}

// checkMTUCounters: nothing was dropped for what it is, the edge said what it should have, and some
// hosts passed connections on, or else the test shows nothing.
func checkMTUCounters(t *testing.T, l *lab.Lab, told string) {
	t.Helper()
	var passedOn uint64
	for _, node := range l.Nodes {
		if node.Socket == "" {
			continue
		}
		counters, err := api.NewClient(node.Socket).Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range counters {
			if c.Role == api.Host {
				passedOn += c.ForwardedPackets()
				continue
			}
			if c.EchoedPackets != 18 {
				t.Errorf("the edge has answered %d echo requests, want 18", c.EchoedPackets)
			}
			got := map[string]bool{"too_big_answered": c.TooBigAnsweredPackets > 0,
				"translated": c.TranslatedPackets > 0}
			for name, said := range got {
				if said != (name == told) {
					t.Errorf("%s by the edge: %v, want %v", name, said, name == told)
				}
			}
		}
	}
	if passedOn == 0 {
		t.Error("no host has passed anything on")
	}
}
