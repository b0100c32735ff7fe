package sample

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// member is one name and value of a JSON object, in the order printed: the order
// is that of the devices, and names may be empty or repeated.
type member struct {
	name  string
	value any // string, []any or []member
}

// parseJSON reads devices out of the first JSON value of text that has some;
// tools print warnings and banners before it.
func parseJSON(t Tool, text string) []row {
	const attempts = 16 // lines that begin like JSON and are not
	tries := 0
	for at := 0; at < len(text) && tries < attempts; {
		line := strings.TrimLeft(text[at:], " \t\r\n")
		at = len(text) - len(line)
		if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
			tries++
			if root, err := decodeJSON(line); err == nil {
				if rows := t.jsonDevices(root); len(rows) > 0 {
					return rows
				}
			}
		}
		next := strings.IndexByte(line, '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return nil
}

func decodeJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return jsonValue(d, 0)
}

func jsonValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		members := []member{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := jsonValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			members = append(members, member{name.(string), value})
		}
		_, err = d.Token()
		return members, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := jsonValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	case nil:
		return "", nil
	}
	return fmt.Sprint(token), nil
}

// jsonDevices finds the objects that are devices; see Tool.Devices.
func (t Tool) jsonDevices(root any) (rows []row) {
	if list, ok := root.([]any); ok && slices.Contains(t.Devices, "[]") {
		return deviceRows(list)
	}
	members, _ := root.([]member)
	for _, where := range t.Devices {
		var pattern *regexp.Regexp
		if strings.HasPrefix(where, "^") {
			pattern = regexp.MustCompile(where)
		}
		for _, m := range members {
			if pattern == nil {
				if list, ok := m.value.([]any); ok && m.name == where {
					rows = append(rows, deviceRows(list)...)
				}
				continue
			}
			if match := pattern.FindStringSubmatch(m.name); len(match) > 1 {
				r := row{}
				r.add("index", match[1])
				flatten(&r, "", m.value)
				rows = append(rows, r)
			}
		}
		if len(rows) > 0 {
			break
		}
	}
	return rows
}

func deviceRows(list []any) (rows []row) {
	for _, v := range list {
		if _, ok := v.([]member); !ok {
			continue
		}
		r := row{}
		flatten(&r, "", v)
		rows = append(rows, r)
	}
	return rows
}

// flatten adds the scalars under v with their paths as keys. An object of value
// and unit is a scalar; lists are of no use here but for the objects in them.
func flatten(r *row, path string, v any) {
	switch v := v.(type) {
	case string:
		r.add(path, v)
	case []any:
		for i, e := range v {
			if _, ok := e.([]member); ok {
				flatten(r, join(path, strconv.Itoa(i)), e)
			}
		}
	case []member:
		o := row{}
		for _, m := range v {
			if s, ok := m.value.(string); ok {
				o.add(m.name, s)
			}
		}
		if value, ok := o.find("value"); ok && path != "" {
			unit, _ := o.find("unit")
			r.add(path, value+" "+unit)
			return
		}
		for _, m := range v {
			flatten(r, join(path, m.name), m.value)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return normal(name)
	}
	return path + "." + normal(name)
}

// parseXML reads the elements named by Devices; keys are paths below them.
func parseXML(t Tool, text string) (rows []row) {
	at := strings.IndexByte(text, '<')
	if at < 0 || len(t.Devices) == 0 {
		return nil
	}
	d := xml.NewDecoder(strings.NewReader(text[at:]))
	d.Strict = false
	path, inside := []string{}, 0 // inside: the depth of the device element
	for {
		token, err := d.Token()
		if err != nil || len(path) > maxDepth {
			return rows // what is complete up to a broken end is kept
		}
		switch token := token.(type) {
		case xml.StartElement:
			path = append(path, token.Name.Local)
			if inside == 0 && token.Name.Local == t.Devices[0] {
				inside = len(path)
				rows = append(rows, row{})
			}
		case xml.EndElement:
			if len(path) == inside {
				inside = 0
			}
			path = path[:max(0, len(path)-1)]
		case xml.CharData:
			if s := strings.TrimSpace(string(token)); s != "" && inside > 0 && len(path) > inside {
				rows[len(rows)-1].add(strings.Join(path[inside:], "."), s)
			}
		}
	}
}
