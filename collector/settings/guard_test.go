package settings

import (
	"errors"
	"strings"
	"testing"
)

// A file of one thing, over and over, is refused before the parser sees it, or is short enough for it.
func TestGuard(t *testing.T) {
	for _, unit := range []string{
		"[", "{", "- ", "? ", "a:\n", "a: b\n", "- [\n", "- - ", "[{", "{a: ", "[a, ", "&a ", "*a ", "a: &a [*a]\n", "a: |\n x\n", "@", "%", "<<: ",
	} {
		err := Load("f", []byte(strings.Repeat(unit, 200_000/len(unit))), new(struct {
			A int `yaml:"a"`
		}))
		var p *Problems
		if !errors.As(err, &p) || len(p.List) != 1 || !strings.HasPrefix(p.List[0].Text, "more than ") && !strings.HasPrefix(p.List[0].Text, "anchors") {
			t.Errorf("%q over and over: %.200v", unit, err)
		}
	}
	if found, p := tokens([]byte(strings.Repeat("# a comment, of any length\n", 30_000) + "a: [[1], {b: 2}]\n")); p != nil || len(found) == 0 {
		t.Errorf("comments: %v", p)
	}
	if _, p := tokens([]byte(strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth))); p != nil {
		t.Errorf("%d lists: %v", maxDepth, p)
	}
}

// A decoder sees no YAML but plain values, lists and mappings.
func TestCheckYAML(t *testing.T) {
	for _, text := range []string{"a: !x\nb", "a: !!seq [1]", "%YAML 1.2\n---\na: 1", "a: {<<: {b: 1}}", "? a\n: b"} {
		var p *Problems
		if err := CheckYAML("f", []byte(text)); !errors.As(err, &p) || len(p.List) != 1 || p.List[0].Line == 0 || !strings.HasPrefix(p.List[0].Text, "tags") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "a: [1, {b: '!x'}] # !x\n- c: \"? <<: %\"", `{"a": ["!x"]}`, "a: b!"} {
		if err := CheckYAML("f", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
