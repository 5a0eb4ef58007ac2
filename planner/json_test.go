package planner_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
)

// text is a value that reads itself.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	*t = text(b)
	return nil
}

// part reads itself, and has the keys of its fields.
type part struct {
	A int `json:"a"`
}

func (p *part) UnmarshalJSON(b []byte) error {
	type plain part
	return planner.InElement(json.Unmarshal(b, (*plain)(p)), "a part")
}

type whole struct {
	planner.Stats
	Name   string                  `json:"name"`
	Parts  []part                  `json:"parts"`
	ByName map[string]*part        `json:"by_name"`
	Lists  [][]struct{ B float64 } `json:"lists"`
	Raw    text                    `json:"raw"`
	Any    any                     `json:"any"`
	Hidden int                     `json:"-"`
	hidden int
}

func TestReadJSON(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{}`, ""},
		{" {\"name\" :\t\"x\\\"}\" , \"parts\":[{\"a\":1},{ \"a\" : -2 } ] }\n", ""},
		{`{"objective":1,"lower_bound":0.5,"optimal":true,"by_name":{"x":{"a":1},"y":null},"lists":[[{"B":1}],[],null]}`, ""},
		{`{"raw":{"a":[1,{"b":2}]},"any":{"z":[{}]}}`, ""},
		{`{"n\u0061me":"x"}`, ""},
		{`{"nam":"x"}`, `byte 1: unknown key "nam"`},
		{`{"Name":"x"}`, `byte 1: unknown key "Name"`},
		{`{"hidden":1}`, `byte 1: unknown key "hidden"`},
		{`{"Hidden":1}`, `byte 1: unknown key "Hidden"`},
		{`{"-":1}`, `byte 1: unknown key "-"`},
		{`{"Stats":{}}`, `byte 1: unknown key "Stats"`},
		{`{"":1}`, `byte 1: unknown key ""`},
		{`{"parts":[{"a":1},{"a":1,"b":2}]}`, `byte 25: parts[1]: unknown key "b"`},
		{`{"by_name":{"x":{"a":1},"y":{"aa":1}}}`, `byte 29: by_name.y: unknown key "aa"`},
		{`{"lists":[[],[{"B":1},{"b":1}]]}`, `byte 23: lists[1][1]: unknown key "b"`},
		{`{"name":"x","name":"y"}`, `byte 12: key "name" is there twice`},
		{`{"name":"x","n\u0061me":"y"}`, `byte 12: key "name" is there twice`},
		{`{"by_name":{"x":{"a":1},"x":{"a":1}}}`, `byte 24: by_name: key "x" is there twice`},
		{`{"raw":{"a":[1,{"b":2,"b":3}]}}`, `byte 22: raw.a[1]: key "b" is there twice`},
		{`{"any":{"a":1,"a":1}}`, `byte 14: any: key "a" is there twice`},
		{`{"name":7}`, `byte 9: name: a number cannot be a string`},
		{`{"parts":[{"a":"x"}]}`, `a part: a: a string cannot be a number`},
		{`{}{}`, `byte 3: more than one JSON value`},
		{`{} x`, `more than one JSON value`},
		{`{"name":"x"`, `byte 11: unexpected EOF`},
		{`{"name":}`, `byte 9: invalid character '}'`},
		{``, `byte 0: no JSON object: the file is empty`},
	} {
		var v whole
		err := planner.ReadJSON(strings.NewReader(tt.in), &v)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want) && !strings.HasSuffix(err.Error(), tt.want)) {
			t.Errorf("ReadJSON(%s): %v, want %q", tt.in, err, tt.want)
		}
		_ = v.hidden
	}
}

// FuzzReadJSON holds that what is read is read alike by the decoder alone, and that the walk over the keys ends.
func FuzzReadJSON(f *testing.F) {
	f.Add(`{"name":"x\\","parts":[{"a":1}],"by_name":{"x":{"a":1}},"lists":[[{"B":1}]],"raw":"\"}","any":[1,-2.5e3,true,null]}`)
	f.Add(` { "any" : { "a" : [ ] , "b" : { } } } `)
	f.Fuzz(func(t *testing.T, in string) {
		var v, w whole
		if planner.ReadJSON(strings.NewReader(in), &v) != nil {
			return
		}
		if err := json.Unmarshal([]byte(in), &w); err != nil {
			t.Fatalf("ReadJSON takes %q, json.Unmarshal says %v", in, err)
		}
	})
}
