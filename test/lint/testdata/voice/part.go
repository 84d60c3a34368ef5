// Package part lets go of what it holds; a socket thinks that a trial was in vain.
package part

const help = "it is content with what anybody says, one thing at a time"
