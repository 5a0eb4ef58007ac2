package history

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// sample is a file of two minutes.
func sample(t testing.TB) []byte {
	s := open(t, t.TempDir(), nil)
	minutesOf(t, s, noon, 2)
	closed(t, s)
	b, err := os.ReadFile(mustGlob(t, filepath.Join(s.opt.Dir, "minute-*"))[0])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzFile holds that a file of any bytes is opened, asked, and appended to.
func FuzzFile(f *testing.F) {
	whole := sample(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append([]byte(nil), whole[fileHead:]...))
	f.Add(append(append([]byte(nil), whole[:200]...), whole...))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName(0, noon, 1)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, nil)
		to := noon + 2*60*second
		if _, err := s.Series(t.Context(), noon, to, func(int, inference.HopKey, *Figures) {}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Sum(t.Context(), noon, to); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Happened(t.Context(), noon, to); err != nil {
			t.Fatal(err)
		}
		minutesOf(t, s, to, 1)
		if _, c := seen(t, s, to, 1); c.Merged() != 1 {
			t.Fatalf("a minute that was written then has %d windows", c.Merged())
		}
		closed(t, s)
	})
}

// FuzzParts reads the parts of a record as if their checksums were right.
func FuzzParts(f *testing.F) {
	s := open(f, f.TempDir(), nil)
	defer closed(f, s)
	var p window.Partial
	p.Hop(inference.HopKey{Node: 1}).Latency.AddValue(1)
	p.Span(noon, noon+1)
	e := events{Findings: []finding{newFinding(&inference.Finding{ID: 1, Kind: inference.HighLatency, Element: inference.ElementOfNode(1)})}}
	h := head{windows: 1}
	b, err := s.encode(&h, &p, &e)
	if err != nil {
		f.Fatal(err)
	}
	pack, err := newPacker()
	if err != nil {
		f.Fatal(err)
	}
	for part := range numParts {
		f.Add(b[h.offset(part):][:h.length[part]])
		plain, err := pack.unpack(nil, b[h.offset(part):][:h.length[part]])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range steps {
			if h, err := readHead(b, s.length); err == nil && (h.end > h.bucket+s.length || h.size() < recordHead) {
				t.Fatalf("%+v", h)
			}
		}
		for _, plain := range [][]byte{b, unpacked(t, &pack, b)} {
			n := 0
			if err := rows(plain, func(inference.HopKey, *Figures) { n++ }); err == nil && n*rowBytes != len(plain) {
				t.Fatalf("%d rows in %d bytes", n, len(plain))
			}
			if e, err := readEvents(plain); err == nil {
				for i := range e.Findings {
					_, _ = e.Findings[i].plain()
				}
				if _, err := jsonOf(&e); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func unpacked(t *testing.T, p *packer, b []byte) []byte {
	if len(b) > 1<<16 {
		return nil
	}
	out, err := p.unpack(nil, b)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	return out
}
