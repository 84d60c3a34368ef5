package kernelfib_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"sextant/linux/rtnetlink"
	"sextant/routing/kernelfib"
	"sextant/routing/rib"
	"sextant/routing/shadowvrf"
	"sextant/test/cputime"
)

const (
	benchRoutes = 100_000
	benchHops   = 64
)

// frames are what zebra sends: each route in a frame of its own, with a next hop object, or with
// all its hops.
func frames(b *testing.B, objects bool, away int) []byte {
	b.Helper()
	var list []rtnetlink.Hop
	for n := 1; n <= benchHops; n++ {
		if n != away {
			list = append(list, hops(n)...)
		}
	}
	var stream []byte
	send := func(m rtnetlink.Message) {
		body, err := m.Append(nil, 0, 0)
		must(b, err)
		stream = binary.BigEndian.AppendUint16(append(stream, 1, 1), uint16(4+len(body)))
		stream = append(stream, body...)
	}
	group := rtnetlink.NextHop{ID: uint32(1000 + away)}
	if objects {
		for i, h := range list {
			send(rtnetlink.Message{Kind: rtnetlink.NewNextHop,
				NextHop: rtnetlink.NextHop{ID: uint32(i + 1), Hop: h}})
			group.Group = append(group.Group, rtnetlink.Leg{ID: uint32(i + 1), Weight: 1})
		}
		send(rtnetlink.Message{Kind: rtnetlink.NewNextHop, NextHop: group})
	}
	for n := range benchRoutes {
		r := rtnetlink.Route{Table: 10, Prefix: prefix(n), Metric: 20, Hops: list}
		if objects {
			r.Hops, r.NextHopID = nil, group.ID
		}
		send(rtnetlink.Message{Kind: rtnetlink.NewRoute, Route: r})
	}
	return stream
}

// told reads a stream into a model and returns what changed.
func told(b *testing.B, m *rib.Model, d *rtnetlink.Decoder, stream []byte) []rib.Change {
	b.Helper()
	reader, buffer := bytes.NewReader(stream), []byte(nil)
	for reader.Len() > 0 {
		frame, err := rtnetlink.ReadFrame(reader, &buffer)
		must(b, err)
		for len(frame) > 0 {
			var h rtnetlink.Header
			var body []byte
			h, body, frame, err = rtnetlink.Next(frame)
			must(b, err)
			message, _, err := d.Decode(h, body)
			must(b, err)
			m.Apply(message)
		}
	}
	return m.Changes()
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// 100,000 routes with 64 next hops come by FPM and go into the kernel, and then one next hop of all
// of them leaves: read, decided, next hops into the shadow, next hops out of the table. What the
// kernel takes for it is the rest.
func BenchmarkRoutes(b *testing.B) {
	for _, objects := range []bool{true, false} {
		b.Run(map[bool]string{true: "objects", false: "hops"}[objects], func(b *testing.B) {
			first, second := frames(b, objects, 0), frames(b, objects, 7)
			for b.Loop() {
				f := open(b, newNetns(b))
				empty := heap()
				var model rib.Model
				var decoder rtnetlink.Decoder
				var table shadowvrf.Table
				learn(b, "install", f, &table,
					func() []rib.Change { return told(b, &model, &decoder, first) })
				learn(b, "replace", f, &table,
					func() []rib.Change { return told(b, &model, &decoder, second) })
				b.ReportMetric((heap()-empty)/(1<<20), "MB")
				b.ReportMetric(float64(len(first))/(1<<20), "MB-told")
				runtime.KeepAlive(&table)
				runtime.KeepAlive(&model)
			}
		})
	}
}

// learn takes news in and writes them into the kernel, and reports the processor time of both and
// their ratio.
func learn(b *testing.B, what string, f *kernelfib.Forwarder, table *shadowvrf.Table,
	news func() []rib.Change) {
	b.Helper()
	var own, kernel time.Duration
	begun := time.Now()
	own += processor(b, func() {
		for _, c := range news() {
			table.Want(c.Prefix, c.Set)
		}
	})
	var stages [3][]shadowvrf.Op
	own += processor(b, func() { stages[0], stages[1], stages[2] = table.Plan(begun) })
	if len(stages[1]) != benchRoutes {
		b.Fatalf("%d routes change, want %d", len(stages[1]), benchRoutes)
	}
	for _, ops := range stages {
		kernel += processor(b, func() { apply(b, f, ops...) })
		own += processor(b, func() {
			for _, op := range ops {
				table.Done(op, begun)
			}
		})
	}
	b.ReportMetric(time.Since(begun).Seconds(), what+"-s")
	b.ReportMetric(own.Seconds(), what+"-own-cpu-s")
	b.ReportMetric(kernel.Seconds(), what+"-kernel-cpu-s")
	b.ReportMetric(own.Seconds()/kernel.Seconds(), what+"-own/kernel")
}

// processor is how much time of processors f takes: on a machine that does other things too, it
// takes longer.
func processor(b *testing.B, f func()) time.Duration {
	b.Helper()
	before := cputime.Used()
	f()
	return cputime.Since(before)
}
