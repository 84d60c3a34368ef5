package fabric

import (
	"net/netip"
	"strings"

	"sextant/agent/access/authority"
)

// newKeys makes an authority and certificates that it signed, valid for either side of TLS at the
// controller's address, as PEM: ca.pem, and NAME.pem and NAME.key of each name.
func newKeys(names ...string) (map[string]string, error) {
	ca, err := authority.New("lab")
	if err != nil {
		return nil, err
	}
	files := map[string]string{"ca.pem": string(ca.Certificate())}
	for _, name := range names {
		pair, err := ca.Sign(name, netip.MustParseAddr(strings.Trim(smoothieControl, "[]")))
		if err != nil {
			return nil, err
		}
		files[name+".pem"], files[name+".key"] = string(pair.Certificate), string(pair.Key)
	}
	return files, nil
}
