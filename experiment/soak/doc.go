// Package soak lets an edge and hosts run for as many flows as a day has, in minutes: real agents
// and programs in a lab, flows by the million given to the programs on their own tables, real
// connections beside them, and pools and agents that change all the time. After each part all
// packets must be accounted for, and at the end nothing may have grown or been left behind.
package soak
