// Package deb holds tests of the Debian package, and of the operator's guide, on machines that are
// as bare as one installed from Debian: each has namespaces, a disk and a systemd of its own. It
// has no code of its own.
package deb
