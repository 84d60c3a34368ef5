// Package accept imports nothing.
package accept
