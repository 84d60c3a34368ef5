// Package address gives virtual addresses of pools to those who ask. It decides alone: what it is
// told, in the order in which it is told, says who has which address.
package address
