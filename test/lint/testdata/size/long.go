// Package size has a long file.
package size

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.

// A comment.
