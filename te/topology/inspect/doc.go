// Package inspect computes properties of a topology that matter for paths: size, connectivity,
// bridges, parallel links.
package inspect
