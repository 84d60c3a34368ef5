// Package southboundpb is made of southbound.proto: how head-ends get paths of flows from a
// controller. TestGenerated of package southbound makes it anew, and compares.
package southboundpb
