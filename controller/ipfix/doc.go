// Package ipfix encodes IPFIX messages (RFC 7011) about flows and links from in-band telemetry.
// Flow records have the segment routing header (RFC 9487) and the on-path delay (RFC 9951).
package ipfix
