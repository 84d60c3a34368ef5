package datapath

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/datapath/model"
)

var _ = fuzzes(FuzzTelemetrySource, "telemetry_source")

// FuzzTelemetrySource compares into which packets telemetry is inserted, and how.
func FuzzTelemetrySource(f *testing.F) {
	fuzzTelemetry(f, "telemetry_source", model.EncodingINT, telemetryClassesTried)
}

// FuzzTelemetryOption compares into which packets an option is inserted, and how.
func FuzzTelemetryOption(f *testing.F) {
	fuzzTelemetry(f, "telemetry_source", model.EncodingIOAM, optionClassesTried)
}

var _ = fuzzes(FuzzTelemetryTransit, "telemetry_transit")

// FuzzTelemetryTransit compares what a node adds.
func FuzzTelemetryTransit(f *testing.F) {
	fuzzTelemetry(f, "telemetry_transit", model.EncodingIOAM, optionClassesTried)
}

var _ = fuzzes(FuzzTelemetrySink, "telemetry_sink")

// FuzzTelemetrySink compares what is taken out, and reported.
func FuzzTelemetrySink(f *testing.F) {
	fuzzTelemetry(f, "telemetry_sink", model.EncodingIOAM, optionClassesTried)
}

func fuzzTelemetry(f *testing.F, role string, encoding model.TelemetryEncoding,
	classes [][]TelemetryClass) {
	w := newTelemetryWorld(f, encoding)
	z := &fuzzer{home: mainNamespace(f), world: w.netns}
	g := telemetryGenerator{rand.New(rand.NewPCG(2, 0))}
	seed(f, len(classes), func() []byte {
		if g.IntN(2) == 0 {
			return g.frame()
		}
		return g.frameWithOption()
	})
	f.Fuzz(func(t *testing.T, class uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		chosen := slices.Clone(classes[int(class)%len(classes)])
		for i := range chosen {
			chosen[i].OneIn = 1 // whose turn it is depends on the thread's processor
		}
		w.setClasses(t, chosen...)
		w.compare(t, role, frame)
		w.counted(t)
	})
}
