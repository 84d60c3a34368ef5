package datapath

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzTelemetrySource compares into which packets telemetry is inserted, and how.
func FuzzTelemetrySource(f *testing.F) { fuzzTelemetry(f, "telemetry_source") }

// FuzzTelemetryTransit compares what a node adds.
func FuzzTelemetryTransit(f *testing.F) { fuzzTelemetry(f, "telemetry_transit") }

// FuzzTelemetrySink compares what is taken out, and reported.
func FuzzTelemetrySink(f *testing.F) { fuzzTelemetry(f, "telemetry_sink") }

func fuzzTelemetry(f *testing.F, role string) {
	w := newTelemetryWorld(f)
	z := &fuzzer{home: mainNamespace(f), world: w.netns}
	seed(f, len(telemetryClassesTried), telemetryGenerator{rand.New(rand.NewPCG(2, 0))}.frame)
	f.Fuzz(func(t *testing.T, class uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		chosen := slices.Clone(telemetryClassesTried[int(class)%len(telemetryClassesTried)])
		for i := range chosen {
			chosen[i].OneIn = 1 // whose turn it is depends on the thread's processor
		}
		w.setClasses(t, chosen...)
		w.compare(t, role, frame)
		w.counted(t)
	})
}
