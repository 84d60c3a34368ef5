// Package hunting is not pure, though it is in a folder of pure packages.
package hunting
