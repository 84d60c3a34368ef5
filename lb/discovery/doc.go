// Package discovery derives the backends of a service from BGP routes. Hosts announce, by BGP, at
// which SID they serve a VIP; an edge learns of them from its peers, directly or by way of route
// reflectors, next to the backends of its configuration.
//
// The decision is a function of what was known before, of the sessions, and of the routes that are
// there now, so that a restarted edge, which knows less for a moment, gives nothing up that is
// still served:
//
//	route there, up            -> up
//	route there, draining      -> draining (RFC 8326: graceful shutdown)
//	route gone, session stands -> draining: the host withdrew, and serves the connections that it has
//	route gone, session settles-> as before: what the peer has to say is not yet complete (RFC 4724)
//	route gone, session lost   -> gone: so is the host, as far as can be told
package discovery
