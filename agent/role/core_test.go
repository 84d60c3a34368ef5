package role_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"sextant/agent/role"
)

// What a watch says that the owner has ended changes nothing any more, also if it was about to say
// it: select chooses at random between an owner that listens and an end.
func TestEndedWatchSaysNothing(t *testing.T) {
	loop := &role.NewCore(t.Context(), "test", slog.New(slog.DiscardHandler)).Loop
	go func() {
		for work := range loop.Work {
			work()
		}
	}()
	defer close(loop.Work)
	for range 1000 {
		ctx, end := context.WithCancel(t.Context())
		if err := loop.Do(ctx, func() {}); err != nil { // the owner listens then
			t.Fatal(err)
		}
		end()
		if err := loop.Do(ctx, func() { t.Error("it was said") }); err == nil {
			t.Fatal("Do does not tell of the end")
		}
	}
}

// What comes while the owner is busy is few pieces of work, bounded, in order, and nothing is lost;
// what comes alone does not wait for more.
func TestWhatComesAtOnceIsFewPiecesOfWork(t *testing.T) {
	const results, most = 500, 64
	loop, busy, free := serve(t), make(chan struct{}), make(chan struct{})
	go func() { _ = loop.Do(t.Context(), func() { close(busy); <-free }) }()
	<-busy
	news, taken := make(chan int, results), make(chan []int, results)
	for i := range results {
		news <- i
	}
	role.FollowAll(t.Context(), loop, news, func(list []int) { taken <- list })
	close(free)
	pieces := 0
	for next := 0; next < results; pieces++ {
		list := <-taken
		if len(list) == 0 || len(list) > most {
			t.Fatalf("a piece of work has %d results", len(list))
		}
		for _, got := range list {
			if got != next {
				t.Fatalf("result %d came, and %d was next", got, next)
			}
			next++
		}
	}
	if least := (results + most - 1) / most; pieces != least {
		t.Errorf("%d results were %d pieces of work, not %d", results, pieces, least)
	}
	for i := range 3 {
		news <- i
		if list := <-taken; !slices.Equal(list, []int{i}) {
			t.Errorf("%d came alone, and was taken as %v", i, list)
		}
	}
}
