package digests

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The digest of each packet is the XOR of the hashes of its writers, and the same seed gives the same flows.
func TestQuestions(t *testing.T) {
	o := Options{Seed: 5, Runs: 3}
	list, err := questions(o, 1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := questions(o, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range list {
		a, _ := json.Marshal(q.Question)
		b, _ := json.Marshal(second[i].Question)
		if !slices.Equal(a, b) {
			t.Errorf("%s: another question of the same seed", q.Name)
		}
		p := q.Problem.(*digestsText)
		if len(p.Flows) != 3 || len(q.truth) != 3 {
			t.Fatalf("%s: %d flows, %d paths", q.Name, len(p.Flows), len(q.truth))
		}
		for flow, f := range p.Flows {
			if len(f.Digests) != q.packets*q.scheme.Instances() {
				t.Errorf("%s: %d digests", q.Name, len(f.Digests))
			}
			for _, d := range f.Digests {
				var sum byte
				for _, h := range d.Writers {
					n := q.truth[flow][h]
					sum ^= hexadecimal(d.Hashes[2*n])<<4 | hexadecimal(d.Hashes[2*n+1])
				}
				if uint32(sum) != d.Digest || len(d.Hashes) != 2*p.Nodes {
					t.Fatalf("%s, flow %d: digest %d, its writers give %d", q.Name, flow, d.Digest, sum)
				}
			}
		}
	}
}

func hexadecimal(c byte) byte { return byte(strings.IndexByte("0123456789abcdef", c)) }

// Answers are counted by path, and those that are none say which path is wrong, and how.
func TestJudge(t *testing.T) {
	list, err := questions(Options{Seed: 1, Runs: 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	q := list[0]
	other := slices.Clone(q.truth[1])
	slices.Reverse(other)
	if sum, err := q.judge(&pathsText{[][]uint32{q.truth[0], other}}); err != nil || sum != (decoded{1, 1}) {
		t.Errorf("%+v, %v", sum, err)
	}
	if sum, err := q.judge(&pathsText{[][]uint32{nil, q.truth[1]}}); err != nil || sum != (decoded{1, 0}) {
		t.Errorf("%+v, %v", sum, err)
	}
	for want, paths := range map[string][][]uint32{
		"paths: 0, want one for each of 2 flows":                    nil,
		"paths[1]: 2 switches, want 5, or null":                     {nil, {1, 2}},
		"paths[0]: there is no switch 4000000000; they are 0 to 79": {{1, 2, 3, 4, 4_000_000_000}, nil},
	} {
		if _, err := q.judge(&pathsText{paths}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", paths, err, want)
		}
	}
}
