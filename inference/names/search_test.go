package names

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

func TestSearch(t *testing.T) {
	n := New([]Node{{ID: 4, Name: "core-3", Site: "", Interfaces: []Interface{{ID: 2, Name: "Ethernet2"}}}}, nil, nil)
	hop := inference.HopKey{Node: 4, EgressIf: 2}
	for text, want := range map[string]Rank{
		"": ContainsAll, "core-3": IsWord, "CORE-3": IsWord, "4:2": IsWord, "core-3:2": IsWord, "ethernet2": IsWord, "core": BeginsWord, "thernet": ContainsAll,
		"core ether": ContainsAll, "core-4": NotFound, "core-3 ethernet3": NotFound, "10.0.0.0/8": NotFound,
	} {
		s := NewSearch(text)
		if got := s.Hop(hop, n); got != want {
			t.Errorf("%q: rank %d, want %d", text, got, want)
		}
	}
	flow, err := decode.ParseFlow("10.1.1.2:80 > [2001:db8::1]:5001 tcp")
	if err == nil {
		t.Fatalf("addresses of two versions are flow %v", flow)
	}
	if flow, err = decode.ParseFlow("10.1.1.2:80 > 10.2.1.3:5001 tcp"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Rank{
		"10.1.1.2:80 > 10.2.1.3:5001/6": IsWord, "10.1.0.0/16": ContainsAll, "10.2.1.3/32": ContainsAll, "10.1.0.0/16 10.2.0.0/16": ContainsAll, "10.1.0.0/16 udp": NotFound,
		"10.3.0.0/16": NotFound, "tcp": IsWord, "5001": ContainsAll, "::/0": NotFound, "0.0.0.0/0": ContainsAll,
	} {
		s := NewSearch(text)
		if got := s.Flow(&flow, n); got != want {
			t.Errorf("%q: rank %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]bool{"4": true, "node 4": true, "4:2": true, "4:1": false, "core-3": true, "core": false, "": false} {
		s := NewSearch(text)
		if got := s.Passes(hop, n); got != want {
			t.Errorf("%q passes: %v", text, got)
		}
	}
	if s := NewSearch("4"); s.Hop(inference.HopKey{Other: true}, nil).Found() {
		t.Error("4 finds the hops that have no place")
	}
	if s := NewSearch(strings.Repeat("ä", maxSearch)); len(s.text) > maxSearch {
		t.Errorf("a text of %d bytes is searched", len(s.text))
	}
}
