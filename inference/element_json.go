package inference

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The JSON of elements is written and read by hand: sinks write findings without reflection.

// MarshalJSON returns, for example, {"kind":"link","node":7,"peer":9,"text":"link 7–9"}, and null for no element. A
// field that does not apply is absent. The text is the whole element, as in sentences.
func (e Element) MarshalJSON() ([]byte, error) {
	if e.Kind == NoElement {
		return []byte("null"), nil
	}
	b := appendText(append([]byte(nil), '{'), "kind", e.Kind.String())
	switch e.Kind {
	case NodeElement:
		b = appendNumber(b, "node", e.Node)
	case InterfaceElement:
		b = appendNumber(appendNumber(b, "node", e.Node), "egress_if", e.EgressIf)
	case LinkElement:
		b = appendNumber(b, "node", e.Node)
		if e.EgressIf != 0 {
			b = appendNumber(b, "egress_if", e.EgressIf)
		}
		b = appendNumber(b, "peer", e.Peer)
		if e.PeerIf != 0 {
			b = appendNumber(b, "peer_if", e.PeerIf)
		}
	case ExporterElement:
		if !e.Nameless {
			b = appendNumber(b, "node", e.Node)
		}
		b = appendText(b, "address", e.Addr.String())
		if !e.Nameless || e.HWID != 0 {
			b = appendNumber(b, "hw_id", uint32(e.HWID))
		}
	case FlowElement:
		b = appendText(b, "flow", e.Flow.String())
	case RouteElement:
		if p := e.Prefix(); p.IsValid() {
			b = appendText(b, "prefix", p.String())
		} else {
			b = appendNumber(appendNumber(b, "node", e.Node), "peer", e.Peer)
		}
	case CollectorElement: // there is one
	default:
		return nil, fmt.Errorf("%s is no kind of element that can be written", e.Kind)
	}
	return append(appendText(b, "text", e.String()), '}'), nil
}

func appendKey(b []byte, key string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(strconv.AppendQuote(b, key), ':')
}

func appendNumber(b []byte, key string, v uint32) []byte {
	return strconv.AppendUint(appendKey(b, key), uint64(v), 10)
}

// appendText writes a text that has nothing to escape: those of elements are numbers, addresses and a few words.
func appendText(b []byte, key, v string) []byte {
	return append(append(append(appendKey(b, key), '"'), v...), '"')
}

// UnmarshalJSON reads what MarshalJSON writes. The text may be absent, and keys that are not known are passed over, as
// long as they have no objects or lists.
func (e *Element) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if string(b) == "null" {
		*e = Element{}
		return nil
	}
	m, err := flatObject(string(b))
	if err != nil {
		return fmt.Errorf("%q is no element such as {\"kind\":\"node\",\"node\":7}: %w", b, err)
	}
	got, err := m.element()
	if err != nil {
		return err
	}
	*e = got
	return nil
}

// flat is a JSON object without others in it: numbers and words as they are written, texts without their quotation marks.
type flat map[string]string

// flatObject reads one.
func flatObject(s string) (flat, error) {
	rest, ok := strings.CutPrefix(s, "{")
	if !ok {
		return nil, fmt.Errorf("no object")
	}
	m := flat{}
	for first := true; ; first = false {
		rest = strings.TrimLeft(rest, jsonSpace)
		if end, ok := strings.CutPrefix(rest, "}"); ok && end == "" {
			return m, nil
		}
		if !first {
			if rest, ok = strings.CutPrefix(rest, ","); !ok {
				return nil, fmt.Errorf("no comma before %q", rest)
			}
		}
		key, after, err := jsonText(strings.TrimLeft(rest, jsonSpace))
		if err != nil {
			return nil, err
		}
		if rest, ok = strings.CutPrefix(strings.TrimLeft(after, jsonSpace), ":"); !ok {
			return nil, fmt.Errorf("no colon behind %q", key)
		}
		rest = strings.TrimLeft(rest, jsonSpace)
		if strings.HasPrefix(rest, `"`) {
			m[key], rest, err = jsonText(rest)
		} else {
			n := strings.IndexAny(rest, ",}"+jsonSpace)
			if n <= 0 || strings.ContainsAny(rest[:n], `{["`) {
				return nil, fmt.Errorf("no number or text behind %q", key)
			}
			if m[key], rest = rest[:n], rest[n:]; m[key] == "null" {
				delete(m, key)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

const jsonSpace = " \t\r\n"

// jsonText reads a text in quotation marks, and returns the rest behind it.
func jsonText(s string) (text, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		return "", "", fmt.Errorf("no text at %q", s)
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", fmt.Errorf("no text at %q", s)
	}
	text, err = strconv.Unquote(quoted)
	return text, s[len(quoted):], err
}

// number is one of a number of bits; 0 if it is absent.
func (m flat) number(key string, bits int, err *error) uint32 {
	text, ok := m[key]
	if !ok {
		return 0
	}
	v, e := strconv.ParseUint(text, 10, bits)
	if e != nil && *err == nil {
		*err = fmt.Errorf("%s %q of an element is no number of %d bits", key, text, bits)
	}
	return uint32(v)
}

func (m flat) element() (Element, error) {
	kind, err := ParseElementKind(m["kind"])
	here := HopKey{Node: m.number("node", 32, &err), EgressIf: m.number("egress_if", 32, &err)}
	there := HopKey{Node: m.number("peer", 32, &err), EgressIf: m.number("peer_if", 32, &err)}
	hwid := m.number("hw_id", 8, &err)
	if err != nil {
		return Element{}, err
	}
	switch kind {
	case NodeElement:
		return ElementOfNode(here.Node), nil
	case InterfaceElement:
		return Element{Kind: kind, Node: here.Node, EgressIf: here.EgressIf}, nil
	case LinkElement:
		return ElementOfLinkAt(here, there), nil
	case CollectorElement:
		return ElementOfCollector(), nil
	case FlowElement:
		return ParseElement("flow " + m["flow"])
	case ExporterElement:
		e, err := ParseElement("exporter " + m["address"])
		if err != nil {
			return Element{}, err
		}
		_, named := m["node"]
		e.Node, e.HWID, e.Nameless = here.Node, uint8(hwid), !named
		return e, nil
	case RouteElement:
		if m["prefix"] != "" {
			return ParseElement("route " + m["prefix"])
		}
		return ElementOfRoute(here.Node, there.Node), nil
	}
	return Element{}, nil
}
