// Package attic has no room in the table.
package attic
