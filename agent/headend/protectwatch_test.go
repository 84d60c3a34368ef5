package headend

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/role"
	"sextant/config"
	"sextant/linux/linuxtest"
)

// While its owner is busy, more changes of interfaces may come than the kernel keeps. Those of
// links are known all the same, and so are those that follow.
func TestLinksAreFollowedAfterLosses(t *testing.T) {
	ns, name := linuxtest.Netns(t)
	ip := func(words string) {
		t.Helper()
		if err := linuxtest.IP(strings.ReplaceAll(words, "NS", name)); err != nil {
			t.Fatal(err)
		}
	}
	ip(`-n NS link add p0 up type veth peer p1
-n NS link set p1 up
-n NS link add other type veth peer p2`)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	p := &Protections{Core: role.NewCore(ctx, "test", slog.New(slog.DiscardHandler)),
		Config: &config.Protect{Links: []config.LocalLink{{Interface: "p0", Link: "a-b"}}}}
	ended, wantDown := make(chan error, 1), func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			var down map[string]bool
			if err := p.Do(ctx, func() { down = p.down }); err != nil {
				t.Fatal(err)
			}
			diff := cmp.Diff(map[string]bool{"p0": true}, down)
			if (diff == "") == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("interfaces that are down: %v", down)
			}
		}
	}
	watched := make(chan error)
	go func() { // the owner
		ended <- ns.Do(func() error {
			watched <- p.watchLinks(ctx)
			for {
				select {
				case f := <-p.Work:
					f()
				case <-ctx.Done():
					return nil
				}
			}
		})
	}()
	if err := <-watched; err != nil {
		t.Fatal(err)
	}
	wantDown(false)
	if err := p.Do(ctx, func() {
		ip("-n NS link set p0 down\n" +
			strings.Repeat("-n NS link set other mtu 1400\n-n NS link set other mtu 1500\n", 3000))
	}); err != nil {
		t.Fatal(err)
	}
	wantDown(true)
	ip("-n NS link set p0 up")
	wantDown(false)
	end()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
