// Package archive keeps records of the edges of a cluster in etcd, for an edge that starts without
// memory.
//
// A record belongs to a service and a node. Its key, prefix/chains/SERVICE/NODE, holds the version
// that counts; the bytes lie in chunks under prefix/chains/SERVICE/NODE/VERSION/NUMBER, because
// etcd refuses requests above 1.5 MiB. The version is the hash of the bytes. All chunks but the
// last are written before; the last one, the version, and the removal of what was there before are
// one transaction. So who reads, which is one request too, finds each record whole, as it is now or
// as it was. A record does not name its writer: each client that can write to etcd can write a
// record, and the one who reads it has to check where it comes from.
package archive
