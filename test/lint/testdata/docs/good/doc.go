// Package good has its comment in doc.go.
package good
