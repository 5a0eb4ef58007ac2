package inference

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// exampleElements has one of each form.
func exampleElements() map[string]Element {
	flow, err := decode.ParseFlow("10.0.0.1:80 > 10.0.0.2:5001 tcp")
	if err != nil {
		panic(err)
	}
	addr := decode.AddrFrom(netip.MustParseAddr("10.0.0.1"))
	return map[string]Element{
		"":                                     {},
		"node 0":                               ElementOfNode(0),
		"node 4294967295":                      ElementOfNode(1<<32 - 1),
		"interface 7:3":                        ElementOfHop(HopKey{Node: 7, EgressIf: 3}),
		"node 7":                               ElementOfHop(HopKey{Node: 7}),
		"link 17–18":                           ElementOfLink(18, 17),
		"link 7:3–9:1":                         ElementOfLinkAt(HopKey{Node: 9, EgressIf: 1}, HopKey{Node: 7, EgressIf: 3}),
		"link 7–9:1":                           ElementOfLinkAt(HopKey{Node: 9, EgressIf: 1}, HopKey{Node: 7}),
		"exporter 10.0.0.1":                    ElementOfAddress(addr),
		"exporter 10.0.0.1 node 7 hardware 0":  ElementOfExporter(ExporterKey{Addr: addr, Node: 7}),
		"exporter 2001:db8::1":                 ElementOfAddress(decode.AddrFrom(netip.MustParseAddr("2001:db8::1"))),
		"flow 10.0.0.1:80 > 10.0.0.2:5001 tcp": ElementOfFlow(flow),
		"route 10.1.0.0/16":                    ElementOfPrefix(netip.MustParsePrefix("10.1.2.3/16")),
		"route 0.0.0.0/0":                      ElementOfPrefix(netip.MustParsePrefix("0.0.0.0/0")),
		"route 2001:db8::/32":                  ElementOfPrefix(netip.MustParsePrefix("2001:db8::/32")),
		"route 7 to 2":                         ElementOfRoute(7, 2),
	}
}

// TestElements holds that each form is printed as it is listed, and read back from text and from JSON.
func TestElements(t *testing.T) {
	for text, e := range exampleElements() {
		if got := e.String(); got != text {
			t.Errorf("%+v is called %q, want %q", e, got, text)
		}
		if got, err := ParseElement(text); err != nil || got != e {
			t.Errorf("ParseElement(%q) = %+v, %v; want %+v", text, got, err, e)
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		got := ElementOfNode(99)
		if err := json.Unmarshal(b, &got); err != nil || got != e {
			t.Errorf("%s reads %s as %+v, %v", text, b, got, err)
		}
		for other, o := range exampleElements() {
			if (e.Compare(o) == 0) != (text == other) || e.Compare(o) != -o.Compare(e) {
				t.Errorf("%q and %q compare as %d and %d", text, other, e.Compare(o), o.Compare(e))
			}
		}
	}
	if got, err := ParseElement(" link 18 - 17 "); err != nil || got != ElementOfLink(17, 18) {
		t.Errorf("a link with a hyphen is %+v, %v", got, err)
	}
}

func TestElementJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                  `null`,
		"link 17–18":        `{"kind":"link","node":17,"peer":18,"text":"link 17–18"}`,
		"link 7:3–9:1":      `{"kind":"link","node":7,"egress_if":3,"peer":9,"peer_if":1,"text":"link 7:3–9:1"}`,
		"exporter 10.0.0.1": `{"kind":"exporter","address":"10.0.0.1","text":"exporter 10.0.0.1"}`,
		"route 10.1.0.0/16": `{"kind":"route","prefix":"10.1.0.0/16","text":"route 10.1.0.0/16"}`,
	} {
		if got, err := json.Marshal(exampleElements()[text]); err != nil || string(got) != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{`7`, `{"kind":"planet"}`, `{"kind":"flow","flow":"x"}`, `{"kind":"exporter","address":"x","node":7}`, `{"kind":"route","prefix":"x"}`, `{"kind":"node","node":-1}`,
		`{"kind":"node","node":4294967296}`, `{"kind":"exporter","address":"10.0.0.1","hw_id":256}`, `{"kind":"node","node":{"kind":"node"}}`, `{"kind":"node","text":[7]}`} {
		e := ElementOfNode(99)
		if err := json.Unmarshal([]byte(bad), &e); err == nil || e != ElementOfNode(99) {
			t.Errorf("%s is read as %+v", bad, e)
		}
	}
	for _, good := range []string{` { "kind" : "link" , "peer":9 ,"node":7, "text":null, "later":"a \"b\" \u003e", "more":1.5e3} `, `{"kind":"link","peer":7,"node":9}`} {
		var e Element
		if err := json.Unmarshal([]byte(good), &e); err != nil || e != ElementOfLink(7, 9) {
			t.Errorf("%s is read as %+v, %v", good, e, err)
		}
	}
	// Bytes that are no JSON are refused, also if encoding/json has not checked them before.
	for _, bad := range []string{"", "{", `{"kind"`, `{"kind":"node"`, `{"kind":"node"}}`, `{"kind":"node" "node":7}`, `{kind:"node"}`, `{"kind":"node","node":7`, `{"kind":"node","node":}`} {
		e := ElementOfNode(99)
		if err := e.UnmarshalJSON([]byte(bad)); err == nil || e != ElementOfNode(99) {
			t.Errorf("%s is read as %+v", bad, e)
		}
	}
	if _, err := json.Marshal(Element{Kind: 77}); err == nil {
		t.Error("an element of no kind is written")
	}
}

// Every kind of element is written as JSON and read again: what a finding can name, every sink and the summary of a run
// write.
func TestElementJSONOfEveryKind(t *testing.T) {
	written := map[ElementKind]bool{}
	all := slices.Collect(maps.Values(exampleElements()))
	for _, e := range append(all, ElementOfCollector()) {
		var got Element
		b, err := json.Marshal(e)
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || got != e {
			t.Errorf("%s of %v is read as %v: %v", b, e, got, err)
		}
		written[e.Kind] = true
	}
	for _, k := range ElementKinds() {
		if !written[k] {
			t.Errorf("no element of kind %s was written", k)
		}
	}
}

func TestParseElementErrors(t *testing.T) {
	for _, bad := range []string{"planet 7", "node", "node x", "node 4294967296", "interface 7", "interface 7:x", "link 7", "link other-7", "link 7–", "exporter", "exporter x",
		"exporter fe80::1%eth0", "exporter 10.0.0.1 node 7", "exporter 10.0.0.1 node 7 hardware 256", "flow x", "route 7", "route 7 to x", "route 10.1.0.0/33"} {
		if e, err := ParseElement(bad); err == nil || e != (Element{}) || !strings.Contains(err.Error(), bad) {
			t.Errorf("ParseElement(%q) = %+v, %v", bad, e, err)
		}
	}
	if e := ElementOfHop(HopKey{Other: true}); e != (Element{}) {
		t.Errorf("the hop that stands for many is %+v", e)
	}
	if e := ElementOfPrefix(netip.Prefix{}); e != (Element{}) {
		t.Errorf("no prefix is %+v", e)
	}
	for _, k := range ElementKinds() {
		if got, err := ParseElementKind(k.String()); err != nil || got != k {
			t.Errorf("ParseElementKind(%s) = %v, %v", k, got, err)
		}
	}
	if got := ElementKind(77).String(); got != "element(77)" {
		t.Errorf("an unknown kind is called %q", got)
	}
}

// TestRandomElements holds that text and JSON give back elements of any numbers.
func TestRandomElements(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	few := func() uint32 { return r.Uint32() >> (r.UintN(33)) }
	for range 20000 {
		var a [16]byte
		for i := range a {
			a[i] = byte(r.Uint32())
		}
		addr := decode.Addr(a)
		if r.IntN(2) == 0 {
			addr = decode.AddrFrom4(a[:4])
		}
		p, _ := addr.Netip().Prefix(r.IntN(addr.Netip().BitLen() + 1))
		for _, e := range []Element{
			ElementOfNode(few()), ElementOfHop(HopKey{Node: few(), EgressIf: few()}), ElementOfLink(few(), few()),
			ElementOfLinkAt(HopKey{Node: few(), EgressIf: few()}, HopKey{Node: few(), EgressIf: few()}),
			ElementOfAddress(addr), ElementOfExporter(ExporterKey{Addr: addr, Node: few(), HWID: uint8(few())}),
			ElementOfPrefix(p), ElementOfRoute(few(), few()),
		} {
			got, err := ParseElement(e.String())
			if err != nil || got != e {
				t.Fatalf("%+v is written %q and read as %+v, %v", e, e, got, err)
			}
			b, err := json.Marshal(e)
			if err == nil {
				err = json.Unmarshal(b, &got)
			}
			if err != nil || got != e {
				t.Fatalf("%+v is written %s and read as %+v, %v", e, b, got, err)
			}
		}
	}
}

func FuzzParseElement(f *testing.F) {
	for text := range exampleElements() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseElement(s)
		if err != nil {
			return
		}
		if second, err := ParseElement(e.String()); err != nil || second != e {
			t.Fatalf("%q is %+v, written %q and read as %+v, %v", s, e, e, second, err)
		}
	})
}
