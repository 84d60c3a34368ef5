// Package draw draws topologies as SVG, with paths over them. Places are taken from the graph where
// it knows them; other networks are laid out so that distances in the drawing resemble distances in
// hops. The same graph gives the same drawing.
package draw
