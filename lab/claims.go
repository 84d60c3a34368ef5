package lab

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"

	"sextant/config"
)

// claims is what the lab needs to know of a node's Sextant configuration. The
// rest of it is the agent's business.
type claims struct {
	API     struct{ Socket string }
	Edge    *roleClaims
	Host    *roleClaims
	Headend *roleClaims
	Merge   *roleClaims
	Strays  *roleClaims
	CFLB    *struct {
		Interfaces []struct{ Name string }
		Forwarding string
	}
}

type roleClaims struct {
	Interfaces []struct{ Name string }
}

// interfaces lists those on which the agent runs its own XDP program.
func (c claims) interfaces() []string {
	var names []string
	roles := []*roleClaims{c.Edge, c.Host, c.Headend, c.Merge, c.Strays}
	if c.CFLB != nil && c.CFLB.Forwarding == string(config.ByXDP) {
		roles = append(roles, &roleClaims{c.CFLB.Interfaces})
	}
	for _, role := range roles {
		if role == nil {
			continue
		}
		for _, iface := range role.Interfaces {
			names = append(names, iface.Name)
		}
	}
	return names
}

func readClaims(text string) (claims, error) {
	var c claims
	err := yaml.Unmarshal([]byte(text), &c)
	if at, ok := errors.AsType[located](err); ok {
		place := config.PlaceOf(at.GetToken())
		err = fmt.Errorf("line %d of it: %s", place.Line, at.GetMessage())
	}
	return c, err
}
