package names

import (
	"strings"
	"testing"
)

// Nothing that steers a terminal passes, wherever writes divide it; what is printed passes as it is.
func TestScreen(t *testing.T) {
	const in = "ok\tspine-7 – é\n\x1b]0;title\x07\x9b31m\u009b2J\u202egnp\u2066x\u2069\r\x00\u2028\xff\xe2\x80"
	const want = "ok\tspine-7 – é\n\ufffd]0;title\ufffd\ufffd31m\ufffd2J\ufffdgnp\ufffdx\ufffd\ufffd\ufffd\ufffd\ufffd"
	for size := 1; size <= len(in); size++ {
		var out strings.Builder
		w := Screen(&out)
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if m, err := w.Write([]byte(rest[:n])); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if out.String() != want {
			t.Errorf("in writes of %d bytes: %q, want %q", size, out.String(), want)
		}
	}
}
