// Package ipfix writes IPFIX messages (RFC 7011) about flows and links: what in-band telemetry said
// of them, as octets. Flow records have the segment routing header (RFC 9487) and the on-path delay
// (RFC 9951).
package ipfix
