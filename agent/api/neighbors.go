package api

import (
	"net/http"
	"net/netip"
	"time"

	"sextant/config"
	"sextant/packet/lists"
)

// Neighbor is a BGP neighbor as other software keeps it. What is left out has its default.
type Neighbor struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	ASN     int        `json:"asn"`
	Port    *int       `json:"port,omitempty"`
	// of this node; "" in what is read: the kernel chooses
	Local           *netip.Addr      `json:"local,omitempty"`
	PasswordFile    *string          `json:"passwordFile,omitempty"`
	Passive         *bool            `json:"passive,omitempty"`
	Families        *[]config.Family `json:"families,omitempty"`
	HoldTimeSeconds *float64         `json:"holdTimeSeconds,omitempty"`
	Multihop        *int             `json:"multihop,omitempty"`
	BFD             *NeighborBFD     `json:"bfd,omitempty"`
}

// NeighborBFD is fast detection of a lost neighbor. Zeros are none.
type NeighborBFD struct {
	IntervalMilliseconds int `json:"intervalMs"`
	Multiplier           int `json:"multiplier"`
}

// NeighborList is all BGP neighbors of a node, and the configuration that they are of.
type NeighborList struct {
	Fingerprint string     `json:"fingerprint"` // for If-Match
	Items       []Neighbor `json:"items"`
}

// NeighborDeclaration sets, adds and removes BGP neighbors in one change, by their names; those
// without a name are left alone. One to remove that is not there is no error.
type NeighborDeclaration struct {
	// Fingerprint is that of the one configuration that may be changed, as If-Match has it; "":
	// any.
	Fingerprint string     `json:"fingerprint,omitempty"`
	Set         []Neighbor `json:"set,omitempty"`
	Remove      []string   `json:"remove,omitempty"`
}

func (h handler) neighbors(r *http.Request) (any, error) {
	node, err := h.agent.Config(r.Context())
	if err != nil {
		return nil, err
	}
	list := NeighborList{Items: []Neighbor{}}
	if list.Fingerprint, err = config.Fingerprint(node); err != nil || node.BGP == nil {
		return list, err
	}
	for _, b := range node.BGP.Neighbors {
		list.Items = append(list.Items, neighborOf(b))
	}
	return list, nil
}

func (h handler) declareNeighbors(r *http.Request) (any, error) {
	var asked NeighborDeclaration
	if err := ReadJSON(r, &asked); err != nil {
		return nil, err
	}
	set := lists.Map(asked.Set, Neighbor.declared)
	return h.declaring(r.Context(), asked.Fingerprint, func(n *config.Node) (*config.Node, error) {
		return config.DeclareNeighbors(n, set, asked.Remove)
	})
}

func (n Neighbor) declared() config.DeclaredNeighbor {
	d := config.DeclaredNeighbor{Name: n.Name, Address: n.Address, ASN: n.ASN, Port: n.Port,
		Local: n.Local, PasswordFile: n.PasswordFile, Passive: n.Passive, Families: n.Families,
		HoldTime: duration(n.HoldTimeSeconds), Multihop: n.Multihop}
	if b := n.BFD; b != nil {
		d.BFD = &config.BFD{Interval: time.Duration(b.IntervalMilliseconds) * time.Millisecond,
			Multiplier: b.Multiplier}
	}
	return d
}

func neighborOf(b config.Neighbor) Neighbor {
	d := b.Declaration()
	return Neighbor{Name: d.Name, Address: d.Address, ASN: d.ASN, Port: d.Port, Local: d.Local,
		PasswordFile: d.PasswordFile, Passive: d.Passive, Families: d.Families,
		HoldTimeSeconds: seconds(d.HoldTime), Multihop: d.Multihop, BFD: &NeighborBFD{
			IntervalMilliseconds: int(d.BFD.Interval.Milliseconds()), Multiplier: d.BFD.Multiplier}}
}
