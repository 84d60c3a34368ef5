// Package fpm is the forwarding plane manager to which FRRouting's zebra tells the routes it has
// chosen: its module dplane_fpm_nl connects and sends them as netlink messages, all of them when it
// connects, and then what changes. Whatever is sent, what was known before holds: a client that
// sends nonsense, falls silent or leaves changes nothing, until one has told all it knows anew.
package fpm
