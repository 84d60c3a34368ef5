package doctor_test

import (
	"strings"
	"testing"

	"sextant/linux"
)

// TestDescribe: each part has what is set up, and none fails.
func TestDescribe(t *testing.T) {
	newPatient(t)
	want := map[string]string{
		"kernel.txt": "Linux version", "links.json": `"name": "near"`,
		"sysctls.txt":        "net/ipv6/conf/near/forwarding = 1",
		"addresses-ipv6.txt": "fd00:5e::e1/64", "addresses-ipv4.txt": "10.0.0.1/24",
		"routes-ipv6.txt": "fcbb:bb00::/32", "routes-ipv4.txt": "10.0.0.2",
		"rules-ipv6.txt": "32766", "rules-ipv4.txt": "32766",
		"neighbours-ipv6.txt": "fd00:5e::1 lladdr 02:00:00:00:00:09",
		"neighbours-ipv4.txt": "",
	}
	for _, part := range linux.Describe() {
		text, known := want[part.Name]
		if !known || part.Err != nil || !strings.Contains(string(part.Text), text) {
			t.Errorf("%s: %v\n%s\nwant %q in it", part.Name, part.Err, part.Text, text)
		}
		delete(want, part.Name)
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}
