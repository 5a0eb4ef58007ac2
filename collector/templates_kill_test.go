package collector

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/decode/ipfix"
)

// A process that is killed while it writes the file leaves the former file, and half of a new one beside it. A later
// process is not hindered by that.
func TestTemplatesHalfWritten(t *testing.T) {
	before, after := someTemplates(10), someTemplates(11)
	whole := exporters.AppendTemplates(nil, after.Save())
	cuts := []int{0, 1, len(whole) / 2, len(whole) - 1, len(whole)}
	for _, cut := range cuts {
		file := filepath.Join(t.TempDir(), "ipfix.templates")
		half := file + ".1234567890.tmp" // as a replacement is called until it is whole
		long := time.Now().Add(-time.Hour)
		if err := os.WriteFile(file, exporters.AppendTemplates(nil, before.Save()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(half, whole[:cut], 0o600), os.Chtimes(half, long, long)); err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		store := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
		k, err := openTemplates(file, store, 1, slog.New(slog.NewTextHandler(&logged, nil)))
		if err != nil || logged.Len() > 0 || len(store.Save()) != 10 {
			t.Fatalf("%d of %d bytes: %d templates of 10, %v, %s", cut, len(whole), len(store.Save()), err, logged.String())
		}
		for _, x := range after.Save() {
			if !store.Restore(&x, 1) {
				t.Fatal("a template is refused")
			}
		}
		k.keep(true)
		if list, err := readTemplates(file); err != nil || len(list) != 11 {
			t.Errorf("%d of %d bytes: %d templates of 11 in the next file, %v", cut, len(whole), len(list), err)
		}
		if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d of %d bytes stay behind: %v", cut, len(whole), err)
		}
	}
}

// writesTemplates names the file that the process of TestTemplatesKilled writes.
const writesTemplates = "HOPSCOPE_TEST_TEMPLATES"

// A process that writes a new template every moment is killed at any time: the next one knows all that it said it had written.
func TestTemplatesKilled(t *testing.T) {
	if file := os.Getenv(writesTemplates); file != "" {
		store := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
		k, err := openTemplates(file, store, 1, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		all := someTemplates(2000).Save()
		for i := len(store.Save()); i < len(all); i++ {
			store.Restore(&all[i], 1)
			k.keep(true)
			fmt.Println("written", i+1)
		}
		time.Sleep(time.Hour) // until it is killed
	}
	file := filepath.Join(t.TempDir(), "ipfix.templates")
	written := 0
	for round := range 12 {
		c := exec.Command(os.Args[0], "-test.run=^TestTemplatesKilled$")
		c.Env = append(os.Environ(), writesTemplates+"="+file)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n <= 3*round && lines.Scan(); {
			if _, number, ok := bytes.Cut(lines.Bytes(), []byte("written ")); ok {
				if written, err = strconv.Atoi(string(number)); err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		time.Sleep(time.Duration(round) * 300 * time.Microsecond) // into the next write
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if _, number, ok := bytes.Cut(lines.Bytes(), []byte("written ")); ok {
				written, _ = strconv.Atoi(string(number))
			}
		}
		_ = c.Wait() // it was killed
		var logged bytes.Buffer
		store := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
		if _, err := openTemplates(file, store, 1, slog.New(slog.NewTextHandler(&logged, nil))); err != nil || logged.Len() > 0 {
			t.Fatalf("round %d: %v, %s", round, err, logged.String())
		}
		if n := len(store.Save()); n < written || written == 0 {
			t.Fatalf("round %d: %d templates, and %d were written", round, n, written)
		}
	}
}
