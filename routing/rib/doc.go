// Package rib knows the routes over SRv6 that routing put into tables, from the messages in which
// it tells of them, and says what changed. It does so alike for FRRouting's FPM and for the kernel;
// a source that tells all it knows anew is compared with what was known.
package rib
