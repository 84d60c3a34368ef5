package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/goccy/go-yaml"

	"sextant/flow"
)

// Marshal writes the canonical text of a node file: every value is there,
// defaults too, and Parse reads it back as the same node. The secret is in
// it in plain text; Redact takes it out.
func Marshal(n *Node) ([]byte, error) {
	text, err := yaml.MarshalWithOptions(documentOf(n), yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write node %q as YAML: %w", n.Name, err)
	}
	return text, nil
}

// MarshalAsJSON writes the same document as JSON, which Parse reads as well, the secret too.
func MarshalAsJSON(n *Node) ([]byte, error) {
	text, err := json.Marshal(documentOf(n))
	if err != nil {
		return nil, fmt.Errorf("write node %q as JSON: %w", n.Name, err)
	}
	return text, nil
}

// MarshalJSON writes the document without the secret: a node that is a part of a log line or of an answer does not show it.
func (n *Node) MarshalJSON() ([]byte, error) { return json.Marshal(documentOf(Redact(n))) }

// Redact returns a copy without the secret.
func Redact(n *Node) *Node {
	c := n.Clone()
	c.Secret = flow.Secret{}
	return c
}

// Fingerprint names the content of a node file: equal nodes have equal
// fingerprints, of 16 hexadecimal digits.
func Fingerprint(n *Node) (string, error) {
	text, err := Marshal(n)
	if err != nil {
		return "", err
	}
	if n.SecretFile != "" {
		text = append(text, n.Secret[:]...)
	}
	if n.Edge != nil {
		for _, s := range n.Edge.Services {
			for _, q := range s.QUIC {
				text = append(text, q.Key...)
			}
		}
	}
	for _, k := range n.HMACKeys() {
		text = append(text, k.Secret.Octets()...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// The types below are the file's shape, key by key.

type document struct {
	Node       string           `yaml:"node" json:"node"`
	Domain     documentDomain   `yaml:"domain" json:"domain"`
	Secret     string           `yaml:"secret,omitempty" json:"secret,omitempty"`
	SecretFile string           `yaml:"secretFile,omitempty" json:"secretFile,omitempty"`
	State      string           `yaml:"state" json:"state"`
	API        documentAPI      `yaml:"api" json:"api"`
	Edge       *documentEdge    `yaml:"edge,omitempty" json:"edge,omitempty"`
	Host       *documentHost    `yaml:"host,omitempty" json:"host,omitempty"`
	Headend    *documentHeadend `yaml:"headend,omitempty" json:"headend,omitempty"`
	Merge      *documentMerge   `yaml:"merge,omitempty" json:"merge,omitempty"`
	Strays     *documentStrays  `yaml:"strays,omitempty" json:"strays,omitempty"`
	Protect    *documentProtect `yaml:"protect,omitempty" json:"protect,omitempty"`
	BGP        *documentBGP     `yaml:"bgp,omitempty" json:"bgp,omitempty"`
	Routing    *documentRouting `yaml:"routing,omitempty" json:"routing,omitempty"`
}

type documentDomain struct {
	Block          string   `yaml:"block" json:"block"`
	Locators       []string `yaml:"locators,flow,omitempty" json:"locators,omitempty"`
	Infrastructure []string `yaml:"infrastructure,flow" json:"infrastructure"`
	MTU            int      `yaml:"mtu" json:"mtu"`
	Overhead       int      `yaml:"overhead" json:"overhead"`
}

type documentAPI struct {
	Socket  string `yaml:"socket" json:"socket"`
	Metrics string `yaml:"metrics,omitempty" json:"metrics,omitempty"`
}

type documentEdge struct {
	Interfaces    []documentInterface `yaml:"interfaces" json:"interfaces"`
	Source        string              `yaml:"source" json:"source"`
	Encapsulation Encapsulation       `yaml:"encapsulation" json:"encapsulation"`
	HMAC          *documentHMACKey    `yaml:"hmac,omitempty" json:"hmac,omitempty"`
	HopLimit      int                 `yaml:"hopLimit" json:"hopLimit"`
	Buckets       int                 `yaml:"buckets" json:"buckets"`
	Peers         []string            `yaml:"peers,flow,omitempty" json:"peers,omitempty"`
	Etcd          *documentEtcd       `yaml:"etcd,omitempty" json:"etcd,omitempty"`
	FlowCache     *documentFlowCache  `yaml:"flowCache,omitempty" json:"flowCache,omitempty"`
	Shadow        *documentShadow     `yaml:"shadow,omitempty" json:"shadow,omitempty"`
	Services      []documentService   `yaml:"services,omitempty" json:"services,omitempty"`
}

type documentInterface struct {
	Name string `yaml:"name" json:"name"`
	Side Side   `yaml:"side,omitempty" json:"side,omitempty"`
	Mode Mode   `yaml:"mode" json:"mode"`
}

type documentService struct {
	Name           string                  `yaml:"name" json:"name"`
	VIP            string                  `yaml:"vip" json:"vip"`
	Protocol       Protocol                `yaml:"protocol" json:"protocol"`
	Port           any                     `yaml:"port" json:"port"`
	Policy         ServicePolicy           `yaml:"policy,omitempty" json:"policy,omitempty"`
	Table          Table                   `yaml:"table,omitempty" json:"table,omitempty"`
	Candidates     int                     `yaml:"candidates,omitempty" json:"candidates,omitempty"`
	Depth          int                     `yaml:"depth,omitempty" json:"depth,omitempty"`
	DrainTime      string                  `yaml:"drainTime,omitempty" json:"drainTime,omitempty"`
	SlowStart      string                  `yaml:"slowStart,omitempty" json:"slowStart,omitempty"`
	ReturnHold     string                  `yaml:"returnHold,omitempty" json:"returnHold,omitempty"`
	NewConnections *documentNewConnections `yaml:"newConnections,omitempty" json:"newConnections,omitempty"`
	QUIC           any                     `yaml:"quic,omitempty" json:"quic,omitempty"`
	Check          *documentCheck          `yaml:"check,omitempty" json:"check,omitempty"`
	Backends       []documentBackend       `yaml:"backends,omitempty" json:"backends,omitempty"`
	Learned        []documentLearned       `yaml:"learned,omitempty" json:"learned,omitempty"`
	Accept         *documentAccept         `yaml:"accept,omitempty" json:"accept,omitempty"`
	Load           string                  `yaml:"load,omitempty" json:"load,omitempty"`
}

type documentBackend struct {
	Name   string       `yaml:"name" json:"name"`
	SID    string       `yaml:"sid" json:"sid"`
	Weight int          `yaml:"weight" json:"weight"`
	State  BackendState `yaml:"state" json:"state"`
	Agent  string       `yaml:"agent,omitempty" json:"agent,omitempty"`
}

type documentHost struct {
	Interfaces []documentInterface `yaml:"interfaces" json:"interfaces"`
	Cgroup     string              `yaml:"cgroup,omitempty" json:"cgroup,omitempty"`
	Source     string              `yaml:"source,omitempty" json:"source,omitempty"`
	Learners   []string            `yaml:"learners,flow,omitempty" json:"learners,omitempty"`
	HMAC       *documentHMAC       `yaml:"hmac,omitempty" json:"hmac,omitempty"`
	SIDs       []documentSID       `yaml:"sids" json:"sids"`
	Services   []documentService   `yaml:"services,omitempty" json:"services,omitempty"`
}

type documentSID struct {
	Prefix   string `yaml:"prefix" json:"prefix"`
	Behavior string `yaml:"behavior" json:"behavior"`
	Backup   string `yaml:"backup,omitempty" json:"backup,omitempty"`
}

type documentAccept struct {
	Policy    Policy   `yaml:"policy" json:"policy"`
	Threshold *int     `yaml:"threshold,omitempty" json:"threshold,omitempty"`
	Workers   *int     `yaml:"workers,omitempty" json:"workers,omitempty"`
	Window    *int     `yaml:"window,omitempty" json:"window,omitempty"`
	Low       *float64 `yaml:"low,omitempty" json:"low,omitempty"`
	High      *float64 `yaml:"high,omitempty" json:"high,omitempty"`
	Initial   *int     `yaml:"initial,omitempty" json:"initial,omitempty"`
	Cores     *int     `yaml:"cores,omitempty" json:"cores,omitempty"`
}

func documentOf(n *Node) document {
	d := document{
		Node: n.Name,
		Domain: documentDomain{
			Block:          n.Domain.Block.Prefix().String(),
			Locators:       each(n.Domain.Locators, netip.Prefix.String),
			Infrastructure: each(n.Domain.Infrastructure, netip.Prefix.String),
			MTU:            n.Domain.MTU,
			Overhead:       n.Domain.Overhead,
		},
		SecretFile: n.SecretFile,
		State:      n.State,
		API:        documentAPI{Socket: n.API.Socket},
	}
	if n.SecretFile == "" && n.Secret != (flow.Secret{}) {
		d.Secret = hex.EncodeToString(n.Secret[:])
	}
	if n.API.Metrics.IsValid() {
		d.API.Metrics = n.API.Metrics.String()
	}
	if n.Edge != nil {
		d.Edge = edgeDocument(n.Edge)
	}
	if n.Host != nil {
		d.Host = hostDocument(n.Host)
	}
	d.Headend, d.Merge = headendDocument(n.Headend), mergeDocument(n.Merge)
	d.Strays = straysDocument(n.Strays)
	d.Protect = protectDocument(n.Protect)
	d.BGP = bgpDocument(n.BGP)
	d.Routing = routingDocument(n.Routing)
	return d
}

func edgeDocument(e *Edge) *documentEdge {
	return &documentEdge{
		Interfaces:    each(e.Interfaces, func(i EdgeInterface) documentInterface { return documentInterface(i) }),
		Source:        e.Source.String(),
		Encapsulation: e.Encapsulation,
		HMAC:          hmacKeyDocument(e.HMAC),
		HopLimit:      e.HopLimit,
		Buckets:       e.Buckets,
		Peers:         each(e.Peers, netip.AddrPort.String),
		Etcd:          etcdDocument(e.Etcd),
		FlowCache:     flowCacheDocument(e.FlowCache),
		Shadow:        shadowDocument(e.Shadow),
		Services: each(e.Services, func(s Service) documentService {
			d := serviceDocument(s.Name, s.Endpoint)
			d.Policy, d.Table, d.Candidates, d.Depth = s.Policy, s.Table, s.Candidates, s.Depth
			d.DrainTime, d.SlowStart, d.ReturnHold = s.DrainTime.String(), s.SlowStart.String(), s.ReturnHold.String()
			d.NewConnections, d.Check = newConnectionsDocument(s.NewConnections), checkDocument(s.Check)
			d.QUIC = quicDocument(s.QUIC)
			d.Backends = each(s.Backends, func(b Backend) documentBackend {
				return documentBackend{b.Name, b.SID.String(), b.Weight, b.State, agentText(b.Agent)}
			})
			d.Learned = each(s.Learned, learnedDocument)
			return d
		}),
	}
}

func hostDocument(h *Host) *documentHost {
	return &documentHost{
		Interfaces: each(h.Interfaces, func(i HostInterface) documentInterface {
			return documentInterface{Name: i.Name, Mode: i.Mode}
		}),
		Cgroup:   h.Cgroup,
		Source:   addressText(h.Source),
		Learners: each(h.Learners, netip.Prefix.String),
		HMAC:     hmacDocument(h.HMAC),
		SIDs: each(h.SIDs, func(s SID) documentSID {
			return documentSID{s.Prefix.String(), s.Behavior.String(), addressText(s.Backup)}
		}),
		Services: each(h.Services, func(s HostService) documentService {
			d := serviceDocument(s.Name, s.Endpoint)
			d.Accept, d.Check = acceptDocument(s.Accept), checkDocument(s.Check)
			if s.QUIC {
				d.QUIC = true
			}
			if s.Load.Kind != LoadConnections {
				d.Load = s.Load.String()
			}
			return d
		}),
	}
}

// addressText is "" for the zero value, which the file leaves out.
func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// agentText is "" where no agent is known.
func agentText(agent netip.AddrPort) string {
	if !agent.IsValid() {
		return ""
	}
	return agent.String()
}

func serviceDocument(name string, e Endpoint) documentService {
	d := documentService{Name: name, VIP: e.VIP.String(), Protocol: e.Protocol, Port: e.Port}
	if e.Port == AnyPort {
		d.Port = FormatPort(e.Port)
	}
	return d
}

func acceptDocument(a Accept) *documentAccept {
	d := &documentAccept{Policy: a.Policy}
	switch a.Policy {
	case Static:
		d.Threshold = &a.Threshold
	case Dynamic:
		low, high := float64(a.LowPermille)/1000, float64(a.HighPermille)/1000
		d.Workers, d.Window, d.Low, d.High, d.Initial = &a.Workers, &a.Window, &low, &high, &a.Initial
	case Average:
		if a.Cores > 0 {
			d.Cores = &a.Cores
		}
	}
	return d
}

func each[T, U any](list []T, convert func(T) U) []U {
	out := make([]U, len(list))
	for i, item := range list {
		out[i] = convert(item)
	}
	return out
}
