// Package examples holds lab files that are part of the program: those that its help and its
// demonstration use.
package examples

import _ "embed" // for the files

// Hunting is a lab of a client, a router, an edge and twelve servers of two cores each.
//
//go:embed hunting.yaml
var Hunting []byte

// Apache is a lab of twelve Apache servers of a tenth of a core each, whose scoreboards feed the
// acceptance policy.
//
//go:embed apache.yaml
var Apache []byte

// Churn is a lab of a client, a router, an edge and eight servers that every policy serves, a VIP
// for each.
//
//go:embed churn.yaml
var Churn []byte

// Protection is a lab of two hosts, a router in front of each, and two paths between the routers
// that delay and lose packets.
//
//go:embed protection.yaml
var Protection []byte

// Soak is a lab of a client, a router, an edge and four servers, for churn that goes on for long.
//
//go:embed soak.yaml
var Soak []byte

// Protect is a lab of four ways of three links between two routers, the first of which protects
// traffic.
//
//go:embed protect.yaml
var Protect []byte
