// Package controller makes of Services and Gateways what edges serve, and writes into their
// status what has become of them.
package controller
