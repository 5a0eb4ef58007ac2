package peer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	for _, c := range []struct{ name, content, token, err string }{
		{"plain", "0123456789abcdef", "0123456789abcdef", ""},
		{"white space around", "  0123456789abcdef\r\n", "0123456789abcdef", ""},
		{"short", "0123456789abcde\n", "", "has 15 characters, outside 16..1024"},
		{"long", strings.Repeat("x", 1025), "", "has 1025 characters"},
		{"two words", "0123456789 abcdef", "", "character 11 is not printable ASCII"},
		{"not ASCII", "0123456789abcdéf", "", "character 15"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Token(file)
			if got != c.token || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("Token(%q) = %q, %v, want %q, %q", c.content, got, err, c.token, c.err)
			}
		})
	}
	if _, err := Token(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("Token of a missing file succeeded")
	}
}

// A host is of this machine by its name or by its address, however that is written.
func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "localhost.example": false, "127.0.0.1.example": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
