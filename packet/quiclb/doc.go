// Package quiclb reads and writes QUIC connection IDs that name a server, as
// draft-ietf-quic-load-balancers describes: a server puts its server ID into the IDs it issues, in
// clear or encrypted, and a load balancer that knows the configuration reads it out of any packet,
// whatever address the client has by now.
package quiclb
