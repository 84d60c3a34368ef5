// Package rib keeps the SRv6 routes of routing tables, from the messages of FRRouting's FPM or of
// the kernel, and reports changes. When a source sends all of its routes again, they are compared
// with those that were known.
package rib
