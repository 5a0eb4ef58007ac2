package access

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilled kills a process that records changes and makes tokens, and holds that all it confirmed is there.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("HOPSCOPE_ACCESS_CHILD"); dir != "" {
		child(dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "access")
	last, made := uint64(0), 0
	for range 3 {
		c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		c.Env = append(os.Environ(), "HOPSCOPE_ACCESS_CHILD="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 40 && lines.Scan(); n++ {
			kind, number, _ := strings.Cut(lines.Text(), " ")
			k, err := strconv.ParseUint(number, 10, 64)
			switch {
			case err != nil:
				t.Fatalf("the child says %q", lines.Text())
			case kind == "change":
				last = k
			default:
				made++
			}
		}
		if err := c.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it confirmed before the signal came
			kind, number, _ := strings.Cut(lines.Text(), " ")
			if k, err := strconv.ParseUint(number, 10, 64); err == nil && kind == "change" {
				last = k
			} else if err == nil {
				made++
			}
		}
		if err := c.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
	}
	s := newSite(t, func(o *Options) { o.Config.Dir = dir })
	if s.changes.last < last || s.changes.last > last+1 || s.changes.odd != 0 {
		t.Errorf("%d changes, %d were confirmed; %d odd lines", s.changes.last, last, s.changes.odd)
	}
	if n := len(s.tokens.list(s.now())); n < made || n > made+1 || made == 0 {
		t.Errorf("%d tokens, %d were confirmed", n, made)
	}
}

// child makes changes until it is killed, and prints each that is confirmed.
func child(dir string) {
	var c Config
	c.SetDefaults()
	c.Dir, c.MaxTokens = dir, maxTokens
	g, err := Open(Options{Config: c, Token: pageToken})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; ; i++ {
		if err := g.changes.append(Change{Action: "work", AtMS: 1, Role: Viewer, Login: ByToken}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("change", g.changes.last)
		if i%4 == 0 {
			if _, _, err := g.tokens.create(fmt.Sprint(os.Getpid(), " ", i), Viewer, "", time.Time{}, time.Now()); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("token", i)
		}
	}
}

// TestFullDisk holds that a change that cannot be recorded is not made, and that the log goes on behind the last whole record.
func TestFullDisk(t *testing.T) {
	s := newSite(t, nil)
	s.make(t, "before", Viewer, 0)
	full := errors.New("no space left on device")
	syncFile = func(*os.File) error { return full }
	defer func() { syncFile = (*os.File).Sync }()
	e := read[failed](t, s.ask("POST", "/api/do/create", `{"name":"x","role":"viewer"}`, withToken(pageToken), inJSON), http.StatusInsufficientStorage)
	if !strings.Contains(e.Error, "no space left") || s.Stats().Unrecorded != 1 || s.Stats().Tokens != 1 || !strings.Contains(s.log.String(), "cannot be recorded") {
		t.Errorf("%v, %+v", e, s.Stats())
	}
	syncFile = (*os.File).Sync
	s.make(t, "after", Viewer, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := newSite(t, func(o *Options) { o.Config.Dir = s.o.Config.Dir })
	if l, _ := again.changes.list(0, "", "", 9); len(l) != 2 || l[0].Number != 2 || l[0].Target != "after" || again.changes.odd != 0 {
		t.Errorf("%+v", l)
	}
	// The file of tokens cannot be written: the token is not there, and the record of its failure is.
	if err := os.Remove(again.tokens.path); err != nil {
		t.Fatal(err)
	}
	again.tokens.path = filepath.Join(again.tokens.path, "x", "tokens.json")
	read[failed](t, again.ask("POST", "/api/do/create", `{"name":"y","role":"viewer"}`, withToken(pageToken), inJSON), 400)
	if l, _ := again.changes.list(0, "", "", 9); len(l) != 4 || l[0].Failed == "" || again.Stats().Tokens != 2 {
		t.Errorf("%+v", l)
	}
}

// TestChangesBounded holds that two files hold the newest changes within the bytes that are allowed.
func TestChangesBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.jsonl")
	const most = 64 << 10
	j, err := openJournal(path, most)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		if err := j.append(Change{Action: "work", Role: Admin, Target: strings.Repeat("t", 2*maxTarget), Text: strings.Repeat("é", i%maxNote)}); err != nil {
			t.Fatal(err)
		}
		var size int64
		for _, p := range []string{path, path + ".1"} {
			if info, err := os.Stat(p); err == nil {
				size += info.Size()
			}
		}
		if size > most {
			t.Fatalf("%d bytes behind %d changes", size, i+1)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if j, err = openJournal(path, most); err != nil {
		t.Fatal(err)
	}
	defer j.close()
	l, more := j.list(0, "", "", 20)
	if j.last != 400 || len(l) != 20 || !more || l[0].Number != 400 || l[19].Number != 381 || len(l[0].Target) != maxTarget {
		t.Errorf("last %d, %d of the list", j.last, len(l))
	}
	if l, more = j.list(j.kept[0].Number+1, "", "", 5); len(l) != 1 || more {
		t.Errorf("before the oldest: %d, %v", len(l), more)
	}
}

// TestAttemptsBounded holds that made-up addresses do not fill the memory.
func TestAttemptsBounded(t *testing.T) {
	a, now := newAttempts(), time.Unix(1_800_000_000, 0)
	first := netip.MustParseAddr("192.0.2.1")
	a.fail(first, now)
	for i := range 3 * mostAddrs {
		now = now.Add(time.Millisecond)
		a.fail(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(a.all) != mostAddrs || a.all[first] != nil {
		t.Errorf("%d addresses, the oldest is there: %v", len(a.all), a.all[first] != nil)
	}
	now = now.Add(2 * forgetAfter)
	if a.fail(first, now); len(a.all) != 1 {
		t.Errorf("%d addresses after a rest", len(a.all))
	}
}

// TestDamagedTokens holds that a file of tokens that cannot be read stops the start, with the place and what to do.
func TestDamagedTokens(t *testing.T) {
	good := `{"version":1,"tokens":[{"id":"00000001","name":"a","role":"viewer","created_ms":1,"hash":"` + strings.Repeat("0", 64) + `"}]}`
	if l, err := parseTokens([]byte(good)); err != nil || len(l) != 1 {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"": "byte 0", good[:40]: "byte", strings.Replace(good, `"version":1`, `"version":2`, 1): "version 2", good + "x": "more than one value", strings.Replace(good, "00000001", "0000000x", 1): "no id",
		strings.Replace(good, "viewer", "king", 1): "king", strings.Replace(good, `"role":"viewer",`, "", 1): "no role", strings.Replace(good, "000000000000\"}", "\"}", 1): "hexadecimal",
		strings.Replace(good, `"name":"a"`, `"name":"a\n"`, 1): "printable", strings.Replace(good, `"name"`, `"title"`, 1): "title",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, tokensName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var c Config
		c.SetDefaults()
		c.Dir = dir
		_, err := Open(Options{Config: c})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "restore the file") {
			t.Errorf("%.50s: %v, want %q", text, err, want)
		}
		if err := c.CheckFiles(); err == nil {
			t.Errorf("%.50s: config check finds nothing", text)
		}
	}
}

// FuzzTokens holds that any file is refused, or read as what is written again.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(`{"version":1,"tokens":[{"id":"00000001","name":"a","role":"viewer","created_ms":1,"hash":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"version":1,"tokens":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseTokens(b)
		if err != nil {
			return
		}
		text, err := json.Marshal(tokenFile{tokenVersion, list})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseTokens(text); err != nil || len(again) != len(list) {
			t.Fatalf("%s: %d tokens, then %d: %v", text, len(list), len(again), err)
		}
	})
}

// FuzzChanges holds that a log of any bytes opens, and takes a record that is there after the next start.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(`{"number":1,"at_ms":1,"user":"a","role":"viewer","login":"token","action":"work"}` + "\n"))
	f.Add([]byte("{\"number\":18446744073709551614,\"role\":\"admin\",\"action\":\"x\"}\n{\"num"))
	f.Add(bytes.Repeat([]byte("x"), 3*maxLine))
	f.Add(bytes.Repeat([]byte("x"), maxLine+1)) // a line that is too long and has no end
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "changes.jsonl")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(path, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		before := j.last
		err = j.append(Change{Action: "work", Role: Viewer})
		if err := errors.Join(err, j.close()); err != nil {
			t.Fatal(err)
		}
		again, err := openJournal(path, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer again.close()
		if again.last != before+1 || again.kept[len(again.kept)-1].Action != "work" {
			t.Fatalf("number %d behind %d", again.last, before)
		}
	})
}
