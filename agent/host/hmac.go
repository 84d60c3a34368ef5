package host

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

// fillHMAC gives the host the keys that it accepts.
func (h *Role) fillHMAC(before *Role) error {
	if len(h.Hmac) == 0 || before != nil && slices.Equal(before.Hmac, h.Hmac) {
		return nil
	}
	return h.Program.SetHMACKeys(h.Hmac)
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
