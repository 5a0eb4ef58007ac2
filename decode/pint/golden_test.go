package pint

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The table was made by a program in Python that has nothing in common with this package but the definition.
func TestGolden(t *testing.T) {
	f, err := os.Open("testdata/golden.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]*Scheme)
	for _, row := range rows[1:] {
		s := made[row[0]]
		if s == nil {
			s = scheme(t, goldenConfig(row[0]))
			made[row[0]] = s
		}
		var id uint32
		var k int
		var want uint64
		if _, err := fmt.Sscanf(row[1]+" "+row[2]+" "+row[4], "%d %d %x", &id, &k, &want); err != nil {
			t.Fatal(err)
		}
		path := make([]uint32, k)
		for i := range path {
			path[i] = uint32(37*(i+1)+11) % 754
			if s.config.ValueBits > 0 {
				path[i] = uint32(i+1) * 2654435761
			}
		}
		if got := s.Digest(id, path); got != want {
			t.Fatalf("%s: packet %d after %d hops: digest %x, want %x", row[0], id, k, got, want)
		}
		for n, set := range strings.Fields(row[3]) {
			p := s.Packet(id, n)
			if got := fmt.Sprintf("%x", s.Writers(&p, k)); got != set {
				t.Fatalf("%s: packet %d, instance %d, after %d hops: writers %s, want %s", row[0], id, n, k, got, set)
			}
		}
	}
	if len(made) != 20 {
		t.Errorf("%d schemes in the table, want 20", len(made))
	}
}

func goldenConfig(name string) Config {
	words := strings.Fields(name)
	c := map[string]Config{
		"baseline":  Baseline(8),
		"hybrid":    {Bits: 8, Instances: 2, Tau: .5, P: []float64{.1}},
		"layers":    {Bits: 3, Instances: 5, Tau: .25, P: []float64{.0625, .3, .5}},
		"wide":      {Bits: 32, Instances: 2, Tau: .5, P: []float64{.25}},
		"fragments": {Bits: 7, Instances: 1, Tau: .5, P: []float64{.125}, ValueBits: 32},
	}[words[1]]
	c.Seed, c.Vectors = 20200810, len(words) == 3
	if words[0] == "crc" {
		c.Hash = HashCRC
	}
	return c
}
