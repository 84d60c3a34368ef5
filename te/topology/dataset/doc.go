// Package dataset holds published topologies inside the program, by names like
// "paper-table3/AS1239". README.md in its folder says where they come from and under which terms.
package dataset
