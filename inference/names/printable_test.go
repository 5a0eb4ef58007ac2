package names

import "testing"

// What a store said does not steer the terminal.
func TestPrintable(t *testing.T) {
	if got := PrintableLines("a\x1b[31mb\nc\u202e\xff"); got != "a\ufffd[31mb\nc\ufffd\ufffd" {
		t.Errorf("Printable = %q", got)
	}
	if got := Printable("a\nb"); got != "a\ufffdb" {
		t.Errorf("Printable = %q", got)
	}
}
