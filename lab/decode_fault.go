package lab

import (
	"errors"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"sextant/config"
)

// located is an error that knows its place in a YAML text.
type located = yaml.Error

// valueError is a value that one of this package's types can't be read from.
type valueError struct {
	located
	text, mend string
}

// decodeFault files what the YAML library says as a fault, in words of YAML
// rather than of Go.
func (s *source) decodeFault(r *report, err error) {
	fault := &Fault{Text: "not YAML: " + err.Error(),
		Mend: "check indentation, brackets and quotes"}
	r.faults = append(r.faults, fault)
	var at located
	if !errors.As(err, &at) {
		fault.File, fault.Line, fault.Column = s.file, 1, 1
		return
	}
	fault.Text = "not YAML: " + at.GetMessage()
	s.put(fault, config.PlaceOf(at.GetToken()))

	var wrong *valueError
	var mismatch *yaml.TypeError
	var shape *yaml.UnexpectedNodeTypeError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &wrong):
		fault.Text, fault.Mend = wrong.text, wrong.mend
	case errors.As(err, &mismatch):
		fault.Text, fault.Mend = wantedKind(mismatch.DstType.Kind())
	case errors.As(err, &shape):
		fault.Text, fault.Mend = wantedShape(shape.Expected)
	case errors.As(err, &overflow):
		fault.Text, fault.Mend = "the number "+overflow.SrcNum+" is too large",
			"write a smaller one"
	}
}

func wantedKind(kind reflect.Kind) (text, mend string) {
	switch kind {
	case reflect.Int:
		return "a number is wanted here", "write it in digits"
	case reflect.Bool:
		return "true or false is wanted here", "write one of the two"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return wantedShape(ast.MappingType)
	case reflect.Slice:
		return wantedShape(ast.SequenceType)
	}
	// The library takes an address in a list inside {} for a key and a value.
	return "one value is wanted here", "write it as text, in quotes if it has a colon"
}

func wantedShape(shape ast.NodeType) (text, mend string) {
	switch shape {
	case ast.MappingType:
		return "keys and values are wanted here", `write them as "key: value", indented`
	case ast.SequenceType:
		return "a list is wanted here", `begin each item with "- " or put the list in [brackets]`
	}
	return wantedKind(reflect.String)
}
