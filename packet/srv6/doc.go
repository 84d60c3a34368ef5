// Package srv6 has the types of Segment Routing over IPv6: SID blocks and locators, compressed SIDs
// and the carriers that hold several of them (RFC 9800, NEXT-C-SID), the Segment Routing Header
// with its TLVs (RFC 8754) and endpoint behaviours (RFC 8986).
//
// Parsers are strict, as their input comes from a network: what they accept can be written back
// octet for octet, and what they refuse gets an error that names the field.
package srv6
