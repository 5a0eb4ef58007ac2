package main

import "testing"

// What a store said does not steer the terminal.
func TestPlain(t *testing.T) {
	if got := plain("a\x1b[31mb\nc\u202e\xff", true); got != "a\ufffd[31mb\nc\ufffd\ufffd" {
		t.Errorf("plain = %q", got)
	}
	if got := plain("a\nb", false); got != "a\ufffdb" {
		t.Errorf("plain = %q", got)
	}
}
