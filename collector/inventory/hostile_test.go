//go:build unix

package inventory

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Hostile files are refused with a line, whatever their length. None of them takes the stack, or more time than its
// length justifies. Without the guard the parser of these texts would not return.
func TestHostileFiles(t *testing.T) {
	const n = 1 << 16
	for name, c := range map[string]struct{ text, want string }{
		"brackets":            {strings.Repeat("[", n), "nested too deeply"},
		"closed brackets":     {"nodes: " + strings.Repeat("[", n) + strings.Repeat("]", n), "nested too deeply"},
		"braces":              {strings.Repeat("{a: ", n), "nested too deeply"},
		"dashes":              {strings.Repeat("- ", n) + "x", "nested too deeply"},
		"keys":                {strings.Repeat("a: ", n), "nested too deeply"},
		"complex keys":        {strings.Repeat("? ", n), "no place in an inventory"},
		"anchors":             {strings.Repeat("&a ", n) + "x", "no place in an inventory"},
		"tags":                {strings.Repeat("!a ", n) + "x", "no place in an inventory"},
		"an alias of itself":  {"nodes: &a\n- *a\n", "no place in an inventory"},
		"a mapping in itself": {"nodes:\n- &a {id: 1, interfaces: [*a]}\n", "f:2: anchors"},
		"laughs":              {"a: &a [x, x]\nb: &b [*a, *a]\nnodes: [*b, *b]\n", "no place in an inventory"},
		"merged":              {"nodes:\n- {id: 1, <<: {name: x}}\n", "no"},
		"two bytes order":     {"\xfe\xff\x00n\x00o", ""},
		"zeros":               {strings.Repeat("\x00", 1000), ""},
		"a number too far":    {"nodes: [{id: 99999999999999999999}]", "is no number"},
		"a number of places":  {"nodes: [{id: 1e3}]", "is no number"},
		"an endless speed":    {"nodes: [{id: 1, interfaces: [{id: 1, speed: 1e999}]}]", "speed"},
		"a speed below zero":  {"nodes: [{id: 1, interfaces: [{id: 1, speed: -1G}]}]", "speed"},
		"no speed":            {"nodes: [{id: 1, interfaces: [{id: 1, speed: .nan}]}]", "speed"},
		"escapes in trouble":  {"nodes: [\n  \x1b[31m: }", ""},
		"escapes in a key":    {"\"\\e[31mnodes\": []", `no key "\x1b[31mnodes"`},
	} {
		_, err := Read("f", strings.NewReader(c.text), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		for _, r := range err.Error() {
			if r != '\n' && unicode.Is(unicode.C, r) {
				t.Errorf("%s: the error has the control character %q: %.200q", name, r, err.Error())
				break
			}
		}
	}
	// Lists whose every line is deeper are as deep as the square root of what a file can hold.
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%s-\n", strings.Repeat(" ", i))
	}
	if _, err := Read("f", strings.NewReader(b.String()), nil); err == nil {
		t.Error("a staircase is an inventory")
	}
	if n, err := Read("f", strings.NewReader("nodes: [{id: 1, name: '*a'}, {id: 2, name: \"&b [[[[[[\"}]"), nil); err != nil || n.Node(1) != "*a (1)" || n.Node(2) != "&b [[[[[[ (2)" {
		t.Errorf("names in quotes: %v", err)
	}
}

// Any name is shown as one line of text with the number after it, and no two nodes look alike.
func TestHostileNames(t *testing.T) {
	hostile := []string{
		`"\e[31mred\e[0m"`, `"a\nb"`, `"b\tc"`, `"c\rd"`, `"\u202egnp"`, `"\u2066x\u2069"`, `"<script>alert(1)</script>"`, `"a,b=c \"d\\"`, `18`, `0x11`, `1e3`, `yes`, `"(18)"`, `"node 18"`,
		`"` + strings.Repeat("x", 10_000) + `"`, `"\0"`, "\"\xff\xfe\xc0\"", `"{{.Text}}"`, `"%s%n"`, `"$(id)"`, `"=cmd()"`, `"link 3–4"`, `" "`, `"e\u200bf"`,
	}
	var b strings.Builder
	b.WriteString("nodes:\n")
	for i, name := range hostile {
		fmt.Fprintf(&b, "  - {id: %d, name: %s, interfaces: [{id: 3, name: %s}]}\n", 100+i, name, name)
	}
	fmt.Fprintf(&b, "hosts: [{prefix: 10.0.0.1, name: %s}]\ndrop_reasons: {7: %s}\n", hostile[0], hostile[0])
	n, err := Read("f", strings.NewReader(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	check := func(what, text string) {
		t.Helper()
		if !utf8.ValidString(text) || len(text) > 4*names.MaxName+200 {
			t.Errorf("%s: %d bytes, valid %v", what, len(text), utf8.ValidString(text))
		}
		for _, r := range text {
			if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) {
				t.Errorf("%s: %q has the character %q", what, text, r)
			}
		}
	}
	for i := range hostile {
		id := uint32(100 + i)
		text := n.Node(id)
		check("node", text)
		if other := shown[text]; other != "" || !strings.HasSuffix(text, fmt.Sprint(id)) && !strings.HasSuffix(text, fmt.Sprintf(" (%d)", id)) {
			t.Errorf("node %d is shown as %q", id, text)
		}
		shown[text] = "x"
		sentence := n.Text(inference.HopKey{Node: id, EgressIf: 3}.Place() + " is slow")
		check("sentence", sentence)
		if !strings.Contains(sentence, fmt.Sprint(id)) || strings.Count(sentence, fmt.Sprint(id)) != 1 {
			t.Errorf("the sentence is %q", sentence)
		}
		check("path", n.Path([]inference.HopKey{{Node: id}, {Node: 1}}))
	}
	check("host", n.Host(netip.MustParseAddr("10.0.0.1")))
	check("reason", n.Reason(7))
	for _, r := range n.Rows() {
		check("row", r.Name+r.Interface+r.Site)
	}
	for _, pair := range []string{"{id: 1, name: \"a\\x01\"}, {id: 2, name: \"a\\x02\"}", "{id: 1, name: a}, {id: 2, name: \"a \"}",
		"{id: 1, name: \"" + strings.Repeat("x", 80) + "1\"}, {id: 2, name: \"" + strings.Repeat("x", 80) + "2\"}",
		"{id: 1, name: a, site: s}, {id: 2, name: a, site: \"s \"}"} {
		if _, err := Read("f", strings.NewReader("nodes: ["+pair+"]"), nil); err == nil || !strings.Contains(err.Error(), "is called") {
			t.Errorf("%.60s: two nodes look alike: %v", pair, err)
		}
	}
}

// A file that is incomplete, missing or invalid leaves the names as they were, and is logged once.
func TestHalfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	whole := "nodes:\n  - {id: 1, name: a}\n  - {id: 2, name: b}\nhosts:\n  - {prefix: 10.0.0.0/8, name: \"all of them\"}\n"
	at := time.Unix(1_800_000_000, 0)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var k Keeper
	write(whole)
	if err := k.Open(path, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	first := k.Names()
	for cut := range whole {
		write(whole[:cut])
		k.Refresh(log)
		switch n := k.Names(); {
		case cut == 0 && (n != first || !strings.Contains(k.Problem(), "is empty")):
			t.Errorf("an empty file: %q", k.Problem())
		case n.Node(1) != "a (1)" && n.Node(1) != "1": // a part that is an inventory is one
			t.Errorf("the first %d bytes make %q", cut, n.Node(1))
		}
	}
	write(whole)
	k.Refresh(log)
	if !k.Names().Equal(first) || k.Problem() != "" {
		t.Errorf("the whole file again: %q", k.Problem())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	k.Refresh(log) // opening it would wait for a writer
	k.Refresh(log)
	if !k.Names().Equal(first) || !strings.Contains(k.Problem(), "is no regular file") || strings.Count(out.String(), "not reloaded") != 1 {
		t.Errorf("a pipe: %q, %s", k.Problem(), out.String())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	k.Refresh(log)
	if !k.Names().Equal(first) || k.Problem() == "" {
		t.Errorf("a directory: %q", k.Problem())
	}
}
