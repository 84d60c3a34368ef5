package agent

import (
	"slices"

	"sextant/config"
	"sextant/datapath"
	"sextant/packet/srv6"
)

var hmacRules = map[config.HMACRequire]datapath.HMACRule{
	config.HMACRequireNone: datapath.HMACPresent, config.HMACRequireSRH: datapath.HMACSRH,
	config.HMACRequireAll: datapath.HMACAll,
}

// hmacRule is what is compiled into the host's program. The keys are not: they come and go while it
// runs.
func hmacRule(h *config.HMAC) datapath.HMACRule {
	if h == nil {
		return datapath.HMACNone
	}
	return hmacRules[h.Require]
}

// fillHMAC gives the edge the key to sign with, from the next packet on.
func (e *edgeRole) fillHMAC(before *edgeRole) error {
	if e.hmac == (srv6.HMACKey{}) || before != nil && before.hmac == e.hmac {
		return nil
	}
	return e.program.SetSigningKey(e.hmac)
}

// fillHMAC gives the host the keys that it accepts.
func (h *hostRole) fillHMAC(before *hostRole) error {
	if len(h.hmac) == 0 || before != nil && slices.Equal(before.hmac, h.hmac) {
		return nil
	}
	return h.program.SetHMACKeys(h.hmac)
}

func hmacKeys(h *config.HMAC) (keys []srv6.HMACKey) {
	if h == nil {
		return nil
	}
	for _, k := range h.Keys {
		keys = append(keys, k.Key())
	}
	return keys
}
