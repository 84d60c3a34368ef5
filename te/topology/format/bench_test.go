package format

import (
	"testing"

	"sextant/te/topology/generate"
)

// Loading a provider's network of 10,000 routers and 38,000 edges, in each format.
func BenchmarkRead10000(b *testing.B) {
	g, err := generate.ISP(10000, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range codecs {
		text, err := Write(g, c.format)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(c.format), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Read(File{"isp", text}, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
