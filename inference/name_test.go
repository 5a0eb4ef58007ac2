package inference

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHopNames(t *testing.T) {
	for _, c := range []struct {
		key                       HopKey
		text, place, node, egress string
	}{
		{HopKey{Node: 7, EgressIf: 3}, "7:3", "node 7 interface 3", "7", "3"},
		{HopKey{Node: 7}, "7", "node 7", "7", "0"},
		{HopKey{}, "0", "node 0", "0", "0"},
		{HopKey{Node: 1<<32 - 1, EgressIf: 1<<32 - 1}, "4294967295:4294967295", "node 4294967295 interface 4294967295", "4294967295", "4294967295"},
		{HopKey{Other: true}, "other", "other nodes", "other", "other"},
	} {
		if got := c.key.String(); got != c.text {
			t.Errorf("%+v is written %q, want %q", c.key, got, c.text)
		}
		if got := c.key.Place(); got != c.place {
			t.Errorf("the place of %+v is %q, want %q", c.key, got, c.place)
		}
		if node, egress := c.key.NodeName(), c.key.EgressName(); node != c.node || egress != c.egress {
			t.Errorf("%+v is node %q and interface %q, want %q and %q", c.key, node, egress, c.node, c.egress)
		}
		for _, text := range []string{c.text, c.place} {
			if got, err := ParseHop(text); err != nil || got != c.key {
				t.Errorf("ParseHop(%q) = %+v, %v, want %+v", text, got, err, c.key)
			}
		}
	}
	for _, bad := range []string{"", "x", "7:", ":3", "7:x", "-1", "4294967296", "7:4294967296", "7:3:1", "node", "node 7 interface"} {
		if got, err := ParseHop(bad); err == nil {
			t.Errorf("ParseHop(%q) = %+v, want an error", bad, got)
		}
	}
}

func TestPathNames(t *testing.T) {
	hops := []HopKey{{Node: 1, EgressIf: 2}, {Node: 7}, {Node: 3, EgressIf: 9}}
	if got := NodePath(hops); got != "1 > 7 > 3" {
		t.Errorf("NodePath = %q", got)
	}
	if got := HopPath(hops); got != "1:2-7-3:9" {
		t.Errorf("HopPath = %q", got)
	}
	if got, err := ParsePath(HopPath(hops)); err != nil || !slices.Equal(got, hops) {
		t.Errorf("ParsePath(HopPath) = %v, %v", got, err)
	}
	nodes := []HopKey{{Node: 1}, {Node: 7}, {Node: 3}}
	for _, text := range []string{"1 > 7 > 3", "1>7>3"} {
		if got, err := ParsePath(text); err != nil || !slices.Equal(got, nodes) {
			t.Errorf("ParsePath(%q) = %v, %v", text, got, err)
		}
	}
	if got, err := ParsePath(""); err != nil || got != nil {
		t.Errorf("ParsePath of nothing = %v, %v", got, err)
	}
	long := make([]HopKey, 20)
	if got := HopPath(long); got != "0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0-(4 more)" {
		t.Errorf("HopPath of 20 hops = %q", got)
	}
	for _, bad := range []string{"1 > x", "1--2", ">", HopPath(long)} {
		if got, err := ParsePath(bad); err == nil {
			t.Errorf("ParsePath(%q) = %v, want an error", bad, got)
		}
	}
}

func TestIDs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, id := range []uint64{0, 1, 0xff, 1<<64 - 1, rng.Uint64(), rng.Uint64() >> 30} {
		text := FormatID(id)
		if got, err := ParseID(text); err != nil || got != id || len(text) != 16 {
			t.Errorf("ParseID(FormatID(%x) = %q) = %x, %v", id, text, got, err)
		}
	}
	if got, err := ParseID("1f"); err != nil || got != 0x1f {
		t.Errorf("ParseID(1f) = %x, %v", got, err)
	}
	for _, bad := range []string{"", "g", "10000000000000000", "-1"} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) gives no error", bad)
		}
	}
}
