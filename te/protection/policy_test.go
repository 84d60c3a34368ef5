package protection_test

import (
	"fmt"
	"strings"
	"testing"

	"sextant/te/protection"
	"sextant/te/srpolicy"
)

// Lists that stay keep their places, and new ones take those of lists that go: copies of one packet
// that meet two tables take different lists.
func TestPlaces(t *testing.T) {
	n := network(t, ladder...)
	s := begin(t, n, intent(3, 0))
	for installed, want := range map[string]string{
		"":                        "path1 path2 path3",
		"path2 path1":             "path2 path1 path3",
		"path3 path1 path2":       "path3 path1 path2",
		"path1 path4 path2":       "path1 path3 path2",
		"path5 path6 path7":       "path1 path2 path3",
		"path9 path8 path7 path1": "path1 path2 path3", // there are fewer places now
	} {
		policy := s.Policy(protection.Installation{Name: "p", Egress: egress, Form: srpolicy.None,
			Places: strings.Fields(installed)})
		var names []string
		for _, l := range policy.Paths[0].Lists {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("installed %s: %s, want %s", fmt.Sprintf("%q", installed), got, want)
		}
	}
}
