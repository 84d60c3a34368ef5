package churn

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sextant/examples"
	"sextant/lab"
)

// Linux tries every half second to get something into a full queue of its own.
const resourceProbe = 500 * time.Millisecond // TCP_RESOURCE_PROBE_INTERVAL

// A server whose link is full keeps its connections as long as clients wait for them, also those
// that it has closed: else what fails is not the balancing.
func TestServersArePatient(t *testing.T) {
	spec, err := lab.Parse("churn.yaml", examples.Churn)
	if err != nil {
		t.Fatal(err)
	}
	webs := 0
	for _, node := range spec.Nodes {
		if !strings.HasPrefix(node.Name, "web") {
			continue
		}
		webs++
		set := map[string]string{}
		for _, s := range node.Sysctls {
			set[s.Name] = s.Value
		}
		for _, name := range []string{"net.ipv4.tcp_orphan_retries", "net.ipv4.tcp_retries2"} {
			tries, err := strconv.Atoi(set[name])
			if err != nil || time.Duration(tries)*resourceProbe <= patience {
				t.Errorf("%s: %s = %q, which is not %v of tries every %v", node.Name, name,
					set[name], patience, resourceProbe)
			}
		}
	}
	if webs != servers {
		t.Errorf("%d servers in the file, want %d", webs, servers)
	}
}
