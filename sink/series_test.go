package sink

import (
	"slices"
	"strings"
	"testing"
)

func TestSeriesList(t *testing.T) {
	for _, s := range AllSeries {
		if s.Doc == "" || len(s.Fields) == 0 || FindSeries(s.Measurement) == nil {
			t.Errorf("%s is described badly", s.Measurement)
		}
		if !slices.IsSortedFunc(s.Tags, func(a, b TagSpec) int { return strings.Compare(a.Key, b.Key) }) {
			t.Errorf("%s: tags are not in order: %v", s.Measurement, s.Tags)
		}
		names := map[string]bool{"time": true}
		for _, tag := range s.Tags {
			if names[tag.Key] || tag.Doc == "" {
				t.Errorf("%s: tag %s", s.Measurement, tag.Key)
			}
			names[tag.Key] = true
		}
		for _, f := range s.Fields {
			if names[f.Key] || f.Doc == "" || f.Kind == String && f.Unit != "" {
				t.Errorf("%s: field %s", s.Measurement, f.Key)
			}
			names[f.Key] = true
		}
	}
}

func TestCheckPoint(t *testing.T) {
	good := func() Point {
		return Point{Measurement: "path", Tags: []Tag{{"flow", "f"}}, Fields: []Field{IntField("hops", 3), StringField("nodes", "1 > 2")}}
	}
	if p := good(); CheckPoint(&p) != nil {
		t.Errorf("%+v: %v", p, CheckPoint(&p))
	}
	for name, change := range map[string]func(*Point){
		"measurement":   func(p *Point) { p.Measurement = "paths" },
		"tag missing":   func(p *Point) { p.Tags = nil },
		"tag unknown":   func(p *Point) { p.Tags[0].Key = "flows" },
		"tag twice":     func(p *Point) { p.Tags = append(p.Tags, p.Tags[0]) },
		"field unknown": func(p *Point) { p.Fields[0].Key = "hop" },
		"field kind":    func(p *Point) { p.Fields[0].Kind = Float },
		"no field":      func(p *Point) { p.Fields = nil },
	} {
		p := good()
		change(&p)
		if CheckPoint(&p) == nil {
			t.Errorf("%s: %+v is accepted", name, p)
		}
	}
}
