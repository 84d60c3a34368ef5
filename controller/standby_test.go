package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/archive"
	"sextant/agent/archive/archivetest"
	"sextant/config"
)

// standby starts a controller that leads or stands by.
func (l *southLab) standby(address, name string, etcd *archivetest.Server) (*Client, func()) {
	l.t.Helper()
	return l.controller(address, 0, fmt.Sprintf("queueBytes: 1000\nstandby: {name: %s, etcd: %s}",
		name, etcd.Text()))
}

func leads(t *testing.T, c *Client) bool {
	t.Helper()
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Standby.Leads
}

// Of two controllers with one etcd, one leads and the head-end follows it alone. When it ends, the
// other one leads, with a higher epoch, and knows the paths. One that etcd is taken from leads on.
func TestStandby(t *testing.T) {
	l, h, etcd := newSouthLab(t), newFakeHead(), archivetest.Start(t, config.Etcd{})
	addresses := []string{freePort(t), freePort(t)}
	one, stopOne := l.standby(addresses[0], "one", etcd)
	await(t, "the first one leads", func() bool { return leads(t, one) })
	two, stopTwo := l.standby(addresses[1], "two", etcd)
	l.follower(h, nil, addresses...)
	await(t, "the one that leads is followed", func() bool { return l.headEnd(one).Followed })
	await(t, "the other one is connected, and knows the leader", func() bool {
		s, err := two.Status(t.Context())
		return err == nil && s.Standby.Leader == "one" && !s.Standby.Leads && s.Epoch == 0 &&
			l.headEnd(two).Connected
	})
	d := move(t, one, 1)
	await(t, "a path is in force", func() bool { return h.segments(tuple(t, 1)) != nil })
	before := l.headEnd(one).Epoch
	stopOne()
	await(t, "the other one is followed", func() bool { return l.headEnd(two).Followed })
	if got := l.headEnd(two); got.Epoch <= before || got.Adopted != 1 {
		t.Errorf("%+v after an epoch of %d", got, before)
	}
	if f, err := two.Flow(t.Context(), testFlow(1)); err != nil || !slices.Equal(f.Path, d.Path) {
		t.Errorf("the flow is %+v, %v; its path was %v", f, err, d.Path)
	}
	etcd.Kill()
	await(t, "it says that etcd is away", func() bool {
		s, err := two.Status(t.Context())
		return err == nil && slices.ContainsFunc(s.Warnings, func(w string) bool {
			return strings.Contains(w, "which controller leads can't be agreed on")
		})
	})
	if !leads(t, two) || !l.headEnd(two).Followed {
		t.Error("without etcd, nothing leads")
	}
	stopTwo()
}

// Of two that each believe to lead, one cannot say so in etcd any more, and stands by.
func TestOnlyOneHolds(t *testing.T) {
	etcd := archive.New(archivetest.Start(t, config.Etcd{}).Etcd())
	defer etcd.Close()
	first, held, err := etcd.Hold(t.Context(), leadKey, "one", 0)
	if err != nil || !held {
		t.Fatalf("held %v, %v", held, err)
	}
	if _, held, err := etcd.Hold(t.Context(), leadKey, "two", 0); err != nil || held {
		t.Errorf("a key that is held was taken: %v", err)
	}
	second, held, err := etcd.Hold(t.Context(), leadKey, "two", first)
	if err != nil || !held || second <= first {
		t.Fatalf("held %v at %d after %d, %v", held, second, first, err)
	}
	c := &Controller{options: Options{Config: &Config{Standby: Standby{Name: "one"}}}}
	mine := tenure{lease: time.Minute, leads: true, epoch: uint64(first), revision: first}
	c.step(t.Context(), etcd, &mine)
	if mine.leads || mine.epoch != 0 {
		t.Errorf("after another one took the key: %+v", mine)
	}
	c.step(t.Context(), etcd, &mine)
	if mine.leads || mine.holder.Name != "two" {
		t.Errorf("it stands by as %+v", mine)
	}
	if err := etcd.Release(t.Context(), leadKey, first); err != nil {
		t.Fatal(err)
	}
	if h, err := etcd.Holder(t.Context(), leadKey); err != nil || h.Name != "two" {
		t.Errorf("a key of another one was released: %+v, %v", h, err)
	}
	if err := etcd.Release(t.Context(), leadKey, second); err != nil {
		t.Fatal(err)
	}
	c.step(t.Context(), etcd, &mine)
	if !mine.leads || mine.epoch <= uint64(second) {
		t.Errorf("nothing holds the key, and %+v", mine)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.step(ended, etcd, &mine)
	if !mine.leads || mine.problem == "" {
		t.Errorf("one that can't reach etcd: %+v", mine)
	}
}

// A holder's silence counts from its last write, whenever this one began to look.
func TestTenure(t *testing.T) {
	now := time.Now()
	s := tenure{lease: time.Second}
	one := archive.Holder{Name: "one", Revision: 5}
	for _, step := range []struct {
		holder archive.Holder
		after  time.Duration
		want   bool
	}{
		{one, 0, false}, {one, 900 * time.Millisecond, false}, {one, time.Second, true},
		{archive.Holder{Name: "one", Revision: 6}, 1100 * time.Millisecond, false},
		{archive.Holder{Name: "one", Revision: 6}, 2 * time.Second, false},
		{archive.Holder{Name: "one", Revision: 6}, 2100 * time.Millisecond, true},
		{archive.Holder{}, 2200 * time.Millisecond, true},
	} {
		if got := s.saw(step.holder, now.Add(step.after)); got != step.want {
			t.Errorf("%+v after %v: %v", step.holder, step.after, got)
		}
	}
}

func TestStandbyConfig(t *testing.T) {
	const endpoint = `etcd: {endpoints: ["http://[::1]:2379"]}}`
	for text, problem := range map[string]string{
		"standby: {name: a}":    "all the same etcd.endpoints",
		"standby: {" + endpoint: "give each controller a name",
		`standby: {name: a, etcd: {endpoints: ["[::1]:2379"]}}`: "write one like",
		"standby: {name: a, lease: 1ms, " + endpoint:            "standby.lease",
	} {
		if _, err := Parse([]byte("topology: x\n" + text)); err == nil ||
			!strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
}
