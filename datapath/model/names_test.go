package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
)

// names returns the names of the values from 0 on, until one is unknown.
func names[T interface {
	~uint8
	fmt.Stringer
}]() (all []string) {
	for value := T(0); value.String() != "unknown"; value++ {
		all = append(all, value.String())
	}
	return all
}

// TestNames pins the names that counters, logs and the command line show.
func TestNames(t *testing.T) {
	for _, test := range []struct{ got, want []string }{
		{names[model.Verdict](), strings.Fields(`pass transmit redirect hand_to_kernel drop`)},
		{names[model.Reason](), strings.Fields(`none truncated bad_ip_header bad_checksum bad_length extension_chain routing_header
			ip_options fragment tiny_fragment overlapping_fragment fragment_without_first bad_transport icmp_quote srv6_from_outside spoofed_source no_service new_connections no_backend no_route
			packet_too_big below_min_mtu unanswerable icmp_limit no_headroom
			outside_domain bad_srh hmac_missing hmac_key hmac_wrong segments_left upper_layer hop_limit ecn no_path unknown_flow duplicate rogue old_epoch
			telemetry_probe`)},
		{names[model.Answer](), strings.Fields(`none echoed too_big_answered translated`)},
		{names[model.Offer](),
			strings.Fields(
				`none last here accepted refused refused_before no_service not_here not_tcp stray ` +
					`passed_before returned`)},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		if slices.Contains(test.got, "") {
			t.Errorf("a value without a name in %q", test.got)
		}
	}
	if got := model.Reason(255).String(); got != "unknown" {
		t.Errorf("reason 255 is %q", got)
	}
}
