// Package e2e holds tests of the whole: common clients and servers, in namespaces, through edge and
// hosts that their agents run. It has no code of its own.
package e2e
