// Package compile does not compile.
package compile

func missing() int { return nowhere }
