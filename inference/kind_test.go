package inference

import (
	"strings"
	"testing"
)

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		name := k.String()
		if got, err := ParseKind(name); err != nil || got != k {
			t.Errorf("ParseKind(%q) = %v, %v, want %v", name, got, err, k)
		}
		if seen[name] || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("the name %q is used twice, or is more than small letters and dashes", name)
		}
		if k.Doc() == "" || strings.HasSuffix(k.Doc(), ".") {
			t.Errorf("%s: %q is no half of a sentence", name, k.Doc())
		}
		seen[name] = true
	}
	if len(seen) < 8 || !seen["path-change"] || !seen["routing-loop"] {
		t.Errorf("kinds %v", seen)
	}
	for _, bad := range []string{"", "Drops", "drops ", "kind(200)"} {
		if got, err := ParseKind(bad); err == nil {
			t.Errorf("ParseKind(%q) = %v, want an error", bad, got)
		}
	}
	if got := Kind(0).String() + Kind(0).Doc() + Kind(200).Doc(); got != "" {
		t.Errorf("no kind is called %q", got)
	}
	if got := Kind(200).String(); got != "kind(200)" {
		t.Errorf("an unknown kind is called %q", got)
	}
}

func TestSeverities(t *testing.T) {
	for i, s := range Severities() {
		if got, err := ParseSeverity(s.String()); err != nil || got != s || int(s) != i {
			t.Errorf("ParseSeverity(%q) = %v, %v, want %v", s, got, err, s)
		}
	}
	_, err := ParseSeverity("grave")
	if want := `"grave" is no severity: there are info, warning and critical`; err == nil || err.Error() != want {
		t.Errorf("ParseSeverity: %v, want %s", err, want)
	}
}

func TestNameList(t *testing.T) {
	if got := NameList(Severities(), "or"); got != "info, warning or critical" {
		t.Errorf("NameList = %q", got)
	}
	if got := NameList(Severities()[:1], "or") + NameList(Severities()[:0], "or"); got != "info" {
		t.Errorf("NameList of one and of none = %q", got)
	}
}
