// Package disjoint holds the experiments on paths: those of Aubry, Lebrun, Deville and Bonaventure,
// "Traffic duplication through segmentable disjoint paths" (section IV), what they leave open, and
// the path diversity of data centers.
package disjoint
