package segment_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"sextant/te/segment"
	"sextant/te/topology"
)

// TestThreadsDoNotMatter answers all pairs with different numbers of workers and processors.
func TestThreadsDoNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	g := open(t, "paper-table3/AS3967")
	for _, model := range segment.Models() {
		var want []segment.Answer
		var printed string
		for _, threads := range [][2]int{{1, 1}, {4, 7}} {
			runtime.GOMAXPROCS(threads[0])
			var got []segment.Answer
			err := engine(t, g.All()).Sources(segment.Query{Model: model}, nodes(g), threads[1],
				func(from topology.Node, answers []segment.Answer) error {
					if answers[0].Query.From != from {
						t.Fatalf("answers of %d came as those of %d", answers[0].Query.From, from)
					}
					got = append(got, answers...)
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want, printed = got, fmt.Sprint(got)
			}
			if fmt.Sprint(got) != printed {
				t.Fatalf("model %s: another answer with %d processors and %d workers", model,
					threads[0], threads[1])
			}
		}
		queries := make([]segment.Query, len(want))
		for i, a := range want {
			queries[i] = a.Query
		}
		got, err := engine(t, g.All()).Batch(queries, 3)
		if err != nil || fmt.Sprint(got) != printed {
			t.Fatalf("model %s: another answer in a batch, %v", model, err)
		}
	}
}

func TestVisitEndsTheWork(t *testing.T) {
	g := open(t, "paper-table3/AS3967")
	enough, visits := errors.New("enough"), 0
	err := engine(t, g.All()).Sources(segment.Query{}, nodes(g),
		2, func(topology.Node, []segment.Answer) error {
			if visits++; visits == 3 {
				return enough
			}
			return nil
		})
	if !errors.Is(err, enough) || visits != 3 {
		t.Errorf("%d visits, %v; want 3, %v", visits, err, enough)
	}
	if err := engine(t, g.All()).Sources(segment.Query{}, nodes(g), 0, nil); err == nil {
		t.Error("no workers were accepted")
	}
	if err := engine(t, g.All()).Sources(segment.Query{MaxSIDs: -1}, nodes(g), 1, nil); err == nil {
		t.Error("a wrong query was accepted")
	}
}
