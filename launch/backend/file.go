package backend

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// file is one backend file, cut where its tools and its markers begin: they are
// the bulk of it, and come in this order.
type file struct {
	name                 string
	head, tools, markers []byte
}

// cut finds the parts of a file's text.
func cut(name string, data []byte) file {
	f := file{name: name, head: data}
	for offset := 0; offset < len(data); {
		line, _, _ := bytes.Cut(data[offset:], []byte("\n"))
		switch t := bytes.TrimSpace(line); {
		case bytes.HasPrefix(t, []byte("[[list]]")), bytes.HasPrefix(t, []byte("[[telemetry]]")):
			if f.tools == nil {
				f.head, f.tools = data[:offset], data[offset:]
			}
		case bytes.HasPrefix(t, []byte("[[marker]]")), bytes.HasPrefix(t, []byte("[markers]")):
			before := len(data) - len(f.tools)
			if f.tools == nil {
				f.head = data[:offset]
			} else {
				f.tools = data[before:offset]
			}
			f.markers = data[offset:]
			return f
		}
		offset += len(line) + 1
	}
	return f
}

func decodeHead(f file) (Backend, error) {
	var b Backend
	return b, f.strict(f.head, &b)
}

// strict decodes a part of the file. The lines before it are put back as empty
// ones when something is wrong, so that the error names the right line.
func (f file) strict(part []byte, into any) error {
	if strict(f.name, part, into) == nil {
		return nil
	}
	whole := slices.Concat(f.head, f.tools, f.markers)
	before := bytes.Count(whole[:bytes.Index(whole, part)], []byte("\n"))
	return strict(f.name, append(bytes.Repeat([]byte("\n"), before), part...), into)
}

// strict decodes TOML; an unknown key or a wrong type is an error that names the
// file and the line.
func strict(name string, data []byte, into any) error {
	d := toml.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		row, _ := unknown.Errors[0].Position()
		return fmt.Errorf("%s:%d: unknown key %s", name, row, strings.Join(unknown.Errors[0].Key(), "."))
	}
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := wrong.Position()
		return fmt.Errorf("%s:%d: %s", name, row, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// overlay replaces those keys of a struct that the user's text has.
func overlay(base, over any, name string, text []byte) error {
	var present map[string]any
	if err := toml.Unmarshal(text, &present); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	from, to := reflect.ValueOf(over).Elem(), reflect.ValueOf(base).Elem()
	for i := range from.NumField() {
		if _, ok := present[from.Type().Field(i).Tag.Get("toml")]; ok {
			to.Field(i).Set(from.Field(i))
		}
	}
	return nil
}
