// Package schedulerpb is made of scheduler.proto: how hosts ask a controller for paths.
// TestGenerated of package agent/southbound makes it anew, and compares.
package schedulerpb
