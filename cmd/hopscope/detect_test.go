package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// detectInput has two hops, of which one is four times as slow from window 800 to 802 and the other ends at window 900.
func detectInput() string {
	var b strings.Builder
	b.WriteString("window,site,hop,count,p50,p90,p99,max\n")
	noise := uint32(1)
	row := func(hop string, window, level int) {
		noise = noise*1664525 + 1013904223
		v := level * int(8000+noise>>20) / 100
		fmt.Fprintf(&b, "%d,x,%s,200,%d,%d,%d,%d\n", window, hop, v, v*3/2, v*2, v*3)
	}
	for w := range 1000 {
		level := 100
		if w >= 800 && w < 803 {
			level = 400
		}
		row(`"leaf-1, port 3"`, w, level)
		if w < 900 {
			row("leaf-2", w, 100)
		}
	}
	return b.String()
}

func TestDetect(t *testing.T) {
	text := detectInput()
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "windows.csv"), filepath.Join(dir, "windows.csv.gz")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(text))
	w.Close()
	for name, b := range map[string][]byte{plain: []byte(text), packed: z.Bytes()} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = `hop,start,end,kind,statistic,severity
"leaf-1, port 3",800,812,rise,p50,critical
leaf-2,902,,silent,,critical
`
	for _, path := range []string{plain, packed} {
		if out, stderr, status := run(t, dir, "detect", path, "--format", "csv"); out != want || status != 0 {
			t.Errorf("detect %s: status %d, %s\n%s\nwant\n%s", path, status, stderr, out, want)
		}
	}
	out, _, _ := run(t, dir, "detect", plain, "--format", "json")
	var got struct {
		Hops, Windows, Learning, Judged int
		TooYoung                        int `json:"too_young"`
		TooFew                          int `json:"too_few"`
		Findings                        []struct{ End *int }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Judged != 1900-2*59 || got.TooYoung != 2*59 || got.TooFew != 0 || got.Hops != 2 || got.Windows != 1900 || len(got.Findings) != 2 || got.Findings[1].End != nil {
		t.Errorf("JSON %s: %v", out, err)
	}
	out, _, _ = run(t, dir, "detect", plain)
	if !strings.Contains(out, "2 findings in 1900 windows of 2 hops\n1782 windows judged; 118 not: 118 among the first 60 of their hops, 0 without values\n") || !strings.Contains(out, "902    -    silent  -") {
		t.Errorf("table:\n%s", out)
	}
	// What a spreadsheet saves, with a name that would turn the terminal red.
	strange := "\ufeff" + strings.ReplaceAll(strings.ReplaceAll(text, "leaf-2", "leaf-2\x1b[31m"), "\n", "\r\n")
	if err := os.WriteFile(plain, []byte(strange), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, stderr, _ := run(t, dir, "detect", plain); strings.Contains(out, "\x1b") || !strings.Contains(out, "leaf-2\uFFFD[31m") {
		t.Errorf("table of a strange name: %q, %s", out, stderr)
	}
	short := strings.Join(strings.SplitAfter(text, "\n")[:41], "")
	if err := os.WriteFile(plain, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, _ = run(t, dir, "detect", plain); out != "0 findings in 40 windows of 2 hops; 2 hops had too few windows to be judged\n0 windows judged; 40 not: 40 among the first 60 of their hops, 0 without values\n" {
		t.Errorf("table of a short input: %q", out)
	}
}

// TestDetectKinds holds that values are compared as what they are, and how strictly is what was asked for.
func TestDetectKinds(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "windows.csv")
	table := func(usual, then, spread float64, count int) {
		var b strings.Builder
		b.WriteString("hop,window,count,p50,p90,p99\n")
		noise := uint32(1)
		for w := range 500 {
			noise = noise*1664525 + 1013904223
			v := usual
			if w >= 450 {
				v = then
			}
			v *= 1 + spread*float64(noise>>20)/4096
			fmt.Fprintf(&b, "a,%d,%d,%g,%g,%g\n", w, count, v, v, v)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		kind        string
		usual, then float64
		want        string // of the finding that begins in window 450
	}{
		{"latency", 8000, 30_000, "rise"},
		{"latency", 30_000, 8000, "fall"},
		{"latency", 8, 30, ""}, // far below the floor
		{"queue", 20_000, 200_000, "rise"},
		{"queue", 200_000, 20_000, ""}, // only a rise is news
		{"utilisation", .3, .9, "rise"},
		{"utilisation", .9, .3, "fall"},
		{"loss", 0, .05, "rise"},
		{"loss", .05, 0, ""},
	} {
		table(tt.usual, tt.then, .1, 100)
		out, stderr, status := run(t, dir, "detect", path, "--format", "csv", "--kind", tt.kind)
		if got := strings.Contains(out, "a,450,,"+tt.want) || strings.Contains(out, "a,451,,"+tt.want); status != 0 || tt.want != "" && !got || tt.want == "" && strings.Contains(out, "a,") {
			t.Errorf("%s from %g to %g: status %d, %s%s; want %q", tt.kind, tt.usual, tt.then, status, out, stderr, tt.want)
		}
	}
	table(8000, 30_000, .1, 4)
	if out, _, _ := run(t, dir, "detect", path); !strings.Contains(out, "1 finding in 500") || !strings.Contains(out, "a    452    -    rise") {
		t.Errorf("windows of few values: %s", out)
	}
	table(8000, 13_000, .5, 100) // a step that strict limits find later
	loose, _, _ := run(t, dir, "detect", path, "--format", "csv", "--false-a-day", "1")
	strict, _, _ := run(t, dir, "detect", path, "--format", "csv", "--false-a-day", "0.0001")
	if !strings.Contains(loose, "a,451,") || !strings.Contains(strict, "a,456,") {
		t.Errorf("one false finding a day: %s\none in 10000 days: %s", loose, strict)
	}
}

// TestDetectQueueByItself has a queue that empties, which no setting says is one: most values are 0, which no latency is. It is no
// finding, and one that grows is.
func TestDetectQueueByItself(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "windows.csv")
	var b strings.Builder
	b.WriteString("hop,window,count,p50,p90,p99\n")
	for w := range 600 {
		p50, p99 := 40_000+w*37%2000, 55_000
		if w >= 200 {
			p50, p99 = 0, 1500*(w%3)
		}
		if w >= 590 {
			p50, p99 = 200_000, 400_000
		}
		fmt.Fprintf(&b, "a,%d,100,%d,%d,%d\n", w, p50, (p50+p99)/2, p99)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr, status := run(t, dir, "detect", path, "--format", "csv")
	if status != 0 || !strings.Contains(stderr, "taken for the bytes of a queue") || strings.Count(out, "a,") != 1 || !strings.Contains(out, "a,590,,rise") {
		t.Errorf("status %d, %s%s", status, stderr, out)
	}
}

func TestDetectWrong(t *testing.T) {
	dir := t.TempDir()
	const head = "hop,window,count,p50,p90,p99\n"
	var cut bytes.Buffer
	z := gzip.NewWriter(&cut)
	z.Write([]byte(detectInput()))
	z.Close()
	cut.Truncate(cut.Len() / 2)
	for _, tt := range []struct{ in, want string }{
		{"", "the table is empty"},
		{"hop,window,count,p50,p99\n", `line 1: there is no column "p90"`},
		{head + "a,0,1,1,1\n", "record on line 2: wrong number of fields"},
		{head + "a,-1,1,1,1,1\n", `line 2: window "-1" is not a whole number`},
		{head + "a,99999999999,1,1,1,1\n", `line 2: window "99999999999" is not a whole number up to 10000000`},
		{head + "a,1700000000,1,1,1,1\n", "times have to be divided by a window's length"},
		{"hop,window,hop,count,p50,p90,p99\n", `line 1: there are two columns "hop"`},
		{cut.String(), "the packed file is cut off"},
		{head + "a,0,x,1,1,1\n", `line 2: count "x"`},
		{head + "a,0,1,1,NaN,1\n", `line 2: p90 "NaN" is not a number from 0 to 1e18`},
		{head + "a,0,1,1,1,-3\n", `line 2: p99 "-3"`},
		{head + "a,5,1,1,1,1\na,5,1,1,1,1\n", `line 3: window 5 of hop "a" comes after window 5`},
		{head + "a,5,1,\"1,1,1\n", "line 2"},
		{"\x1f\x8bnot gzip", "gzip"},
	} {
		path := filepath.Join(dir, "in.csv")
		if err := os.WriteFile(path, []byte(tt.in), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, status := run(t, dir, "detect", path); status != 64 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: status %d, %q; want %q", tt.in, status, stderr, tt.want)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"detect", "wants 1 argument"},
		{"detect --kind colour x.csv", "--kind \"colour\" is none of auto, latency, queue, utilisation and loss"},
		{"detect --false-a-day 0 x.csv", "--false-a-day 0 is not from 0.0001 to 10000"},
		{"detect --false-a-day 1 -", "standard input cannot be read twice"},
		{"detect --false-a-day 1 nowhere.csv", "nowhere.csv"},
		{"detect nowhere.csv", "no such file"},
		{"detect in.csv --format xml", "neither table nor json nor csv"},
		{"detect in.csv --window 1ms", "is not from 1s to 1h"},
		{"detect in.csv --floor 0", "is not above 0"},
	} {
		if _, stderr, status := run(t, dir, strings.Fields(tt.args)...); status != 64 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, %q; want %q", tt.args, status, stderr, tt.want)
		}
	}
}
