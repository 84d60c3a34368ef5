// Package telemetry reads and writes in-band network telemetry as it lies on the wire: INT-MD 2.1
// and Telemetry Report 2.0 (P4.org), IOAM traces (RFC 9197, 9326, 9486), SRv6 Path Tracing
// (draft-filsfils-ippm-path-tracing). Each stack or trace yields values of one type, Sample.
//
// What is parsed points into the octets that it was parsed from. Parsing allocates nothing, and
// takes no length from the wire before the octets are seen to be there.
package telemetry
