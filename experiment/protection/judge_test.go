package protection

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/examples"
	"sextant/lab"
)

func TestJudge(t *testing.T) {
	var arrivals []arrival
	for _, number := range []int{0, 1, 1, 4, 3, 3, 4, 99} {
		arrivals = append(arrivals, arrival{number, time.Duration(number) * time.Millisecond})
	}
	got := judge(arrivals, 8)
	want := stream{Sent: 8, Lost: 4, Duplicates: 3, Reordered: 1, Ms: []float64{0, 1, 4, 3},
		LongestGap: 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStatistics(t *testing.T) {
	got := statisticsOf([]float64{4, 2, 8, 2})
	want := statistics{least: 2, mean: 4, deviation: 2.449489742783178, median: 2, p90: 8, p99: 8,
		most: 8}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := statisticsOf(nil); got != (statistics{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestSettingOfTheLab(t *testing.T) {
	s := both(onL2, "bbr", 5*time.Millisecond, 6*time.Millisecond, 0.02)
	s.Seed = 9
	spec, err := lab.Parse("protection.yaml", examples.Protection)
	if err == nil {
		err = s.change(spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	wired := 0
	for _, link := range spec.Links {
		if link.Wire == "" {
			continue
		}
		want := s.Delay[wired]
		wired++
		for _, p := range link.Impair {
			if p.Delay != want || p.Loss != 0.02 || link.Seed != 9 {
				t.Errorf("link %s does %s with seed %d, want a delay of %s and a loss of 2 %%, "+
					"with seed 9", link.Ends[0], p, link.Seed, want)
			}
		}
	}
	if wired != 2 {
		t.Errorf("%d links are impaired, want 2", wired)
	}
	routes := map[string]string{}
	for _, node := range spec.Nodes {
		for _, command := range node.Exec {
			routes[node.Name] += command.Shell + "\n"
		}
	}
	for node, want := range map[string]string{
		"ingress": "segs fcbb:bb00:12::,fcbb:bb00:2:d6:: dev l2\n",
		"egress":  "segs fcbb:bb00:12::,fcbb:bb00:1:d6:: dev l2\n",
		"hosta":   "congctl bbr\n", "hostb": "congctl bbr\n", "p1": "add fcbb:bb00:11::/48",
	} {
		if !strings.Contains(routes[node], want) {
			t.Errorf("node %s runs\n%swithout %q", node, routes[node], want)
		}
	}
}
