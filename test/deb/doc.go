// Package deb holds tests of the Debian package, and of the operator's guide, on emulated machines
// as Debian installs them: each has its own namespaces, disk and systemd. It has no code of its
// own.
package deb
