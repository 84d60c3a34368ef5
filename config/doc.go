// Package config is the node file: schema, strict reader, canonical text, differences between two
// files, and the changes that the command line makes at run time.
//
// Everything here is a pure function of bytes and values. Parse reads YAML (so
// JSON too) and reports every fault that it finds, each with file, line,
// column, the reason and the mend. The schema is one table of fields per
// object (schema.go, or the file of the object), the rules between values are
// in Validate (validate.go), so that a change made at run time meets the same
// rules as a file.
package config
