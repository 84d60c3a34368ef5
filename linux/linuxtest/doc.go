// Package linuxtest makes network namespaces for tests, and runs commands of ip(8) in them.
package linuxtest
