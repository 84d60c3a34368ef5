package netem_test

import (
	"strings"
	"testing"
	"time"

	"sextant/lab/netem"
)

func TestSet(t *testing.T) {
	for _, c := range []struct {
		words string
		want  netem.Profile
	}{
		{"delay 10ms", netem.Profile{Delay: 10 * time.Millisecond}},
		{"delay 0", netem.Profile{}},
		{"loss 10%", netem.Profile{Loss: 0.1}},
		{"loss 0", netem.Profile{}},
		{"lossBurst 3.5", netem.Profile{LossBurst: 3.5}},
		{"rate 100Mbit", netem.Profile{RateBits: 100_000_000}},
		{"rate 2.5mbit", netem.Profile{RateBits: 2_500_000}},
		{"rate 8bit", netem.Profile{RateBits: 8}},
		{"rate 100gbit", netem.Profile{RateBits: 100_000_000_000}},
		{"burst 64kb", netem.Profile{BurstBytes: 65536}},
		{"burst 1.5mb", netem.Profile{BurstBytes: 1572864}},
		{"queue 100 packets", netem.Profile{QueuePackets: 100}},
		{"queue 1p", netem.Profile{QueuePackets: 1}},
		{"queue 20ms", netem.Profile{QueueTime: 20 * time.Millisecond}},
	} {
		var got netem.Profile
		key, text, _ := strings.Cut(c.words, " ")
		if err := got.Set(key, text); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.words, got, err, c.want)
		}
	}
}

func TestSetFaults(t *testing.T) {
	for words, part := range map[string]string{
		"delay 10":          "write a time",
		"delay -1ms":        "write a time",
		"delay 2h":          "up to an hour",
		"loss 5":            "percentage",
		"loss 101%":         "percentage",
		"loss NaN%":         "percentage",
		"lossBurst 0.5":     "in a row",
		"rate 1":            "kbit, mbit, gbit, bit",
		"rate -1kbit":       "write a number",
		"rate NaNbit":       "write a number",
		"rate 1e999bit":     "write a number",
		"rate 7bit":         "between 8bit and 100gbit",
		"rate 101gbit":      "between 8bit and 100gbit",
		"burst 0b":          "between 1b",
		"burst 4096mb":      "between 1b",
		"queue 0":           "number of packets",
		"queue 0 packets":   "from 1 to a million",
		"queue 1.5 packets": "from 1 to a million",
		"speed 1":           "lossBurst",
	} {
		var p netem.Profile
		key, text, _ := strings.Cut(words, " ")
		if err := p.Set(key, text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error %v lacks %q", words, err, part)
		}
	}
}

func TestFault(t *testing.T) {
	for mend, p := range map[string]netem.Profile{
		"make the delay as long at least": {Delay: 1, Jitter: 2},
		"add a delay":                     {Reorder: 0.1},
		"add a loss":                      {LossBurst: 3},
		"make lossBurst 4.0 at least":     {Loss: 0.8, LossBurst: 2},
		"add a rate":                      {QueuePackets: 3},
		"": {Delay: 2, Jitter: 2, Loss: 0.8, LossBurst: 4,
			Reorder: 0.1, RateBits: 8, BurstBytes: 1},
	} {
		if text, got := p.Fault(); got != mend || (text == "") != (mend == "") {
			t.Errorf("%s: %q, mend %q, want %q", p, text, got, mend)
		}
	}
}

// What a profile is said to do sets it again.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{"delay 10ms loss 2.5%", "rate 1.5gbit queue 7p",
		"lossBurst 2 reorder 1%", "burst 3kb jitter 1us duplicate 100%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set := func(text string) (p netem.Profile) {
			words := strings.Fields(text)
			for i := 0; i+1 < len(words); i += 2 {
				if err := p.Set(words[i], words[i+1]); err != nil && err.Error() == "" {
					t.Fatal("an error without a text")
				}
			}
			return p
		}
		once := set(text)
		if twice := set(once.String()); twice.String() != once.String() {
			t.Fatalf("%q is said to be %q, which is %q", text, once, twice)
		}
	})
}
