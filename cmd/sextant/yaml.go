package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"
)

// yamlText is a JSON document as the YAML library writes it, without a tree of its nodes: the
// library takes twelve times as long. A document with a text of several lines is left to it.
type yamlText struct {
	in      *json.Decoder
	text    []byte
	plain   map[string]bool // texts seen: true needs no quotes
	unusual bool            // the library is to write the document
}

// writeYAML goes by way of JSON, so that both have the same keys.
func writeYAML(w io.Writer, value any) error {
	var document bytes.Buffer
	if err := json.NewEncoder(&document).Encode(value); err != nil {
		return err
	}
	out, err := jsonToYAML(document.Bytes())
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = w.Write(out)
	return err
}

func jsonToYAML(document []byte) ([]byte, error) {
	y := yamlText{in: json.NewDecoder(bytes.NewReader(document)), plain: map[string]bool{}}
	y.in.UseNumber()
	if err := y.value(0, false); err != nil {
		return nil, err
	}
	if y.unusual {
		return yaml.JSONToYAML(document)
	}
	return append(y.text, '\n'), nil
}

// value writes the next value of the document, behind a key in that column or where the text ends.
func (y *yamlText) value(column int, behindKey bool) error {
	read, err := y.in.Token()
	if err != nil {
		return err
	}
	begin, nested := read.(json.Delim)
	nested = nested && y.in.More()
	if behindKey && !nested {
		y.text = append(y.text, ' ')
	}
	if !nested {
		return y.leaf(read)
	}
	if behindKey && begin == '{' {
		column += 2
	}
	for first := true; y.in.More(); first = false {
		if behindKey || !first {
			y.text = append(y.text, '\n')
			y.text = append(y.text, strings.Repeat(" ", column)...)
		}
		if begin == '[' {
			y.text = append(y.text, "- "...)
			err = y.value(column+2, false)
		} else if read, err = y.in.Token(); err == nil {
			y.string(read.(string))
			y.text = append(y.text, ':')
			err = y.value(column, true)
		}
		if err != nil {
			return err
		}
	}
	_, err = y.in.Token()
	return err
}

// leaf writes a value that has no other in it.
func (y *yamlText) leaf(read json.Token) error {
	switch v := read.(type) {
	case json.Delim:
		end, err := y.in.Token()
		y.text = fmt.Appendf(y.text, "%v%v", v, end)
		return err
	case string:
		y.string(v)
	case json.Number:
		return y.number(v)
	case bool:
		y.text = strconv.AppendBool(y.text, v)
	case nil:
		y.text = append(y.text, "null"...)
	}
	return nil
}

// number writes one with a point as the shortest that is read as the same, any other as it is.
func (y *yamlText) number(v json.Number) error {
	text := v.String()
	if strings.Contains(text, ".") {
		f, err := v.Float64()
		if err != nil {
			return err
		}
		if text = strconv.FormatFloat(f, 'g', -1, 64); !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
	} else if text == "-0" {
		text = "0"
	}
	y.text = append(y.text, text...)
	return nil
}

// string writes a text in quotes if it needs them.
func (y *yamlText) string(v string) {
	plain, seen := y.plain[v]
	if !seen {
		plain = !token.IsNeedQuoted(v)
		y.plain[v] = plain
		y.unusual = y.unusual || plain && strings.ContainsAny(v, "\r\n")
	}
	if plain {
		y.text = append(y.text, v...)
	} else {
		y.text = strconv.AppendQuote(y.text, v)
	}
}
