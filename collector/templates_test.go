package collector

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

// someTemplates is a store that knows templates.
func someTemplates(n int) *ipfix.Store {
	st := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	rnd := rand.New(rand.NewPCG(28, 11))
	for i := range n {
		d := plain.RandomTemplate(rnd, uint16(9+i%2))
		src := ipfix.Source{Port: uint16(i % 3)}
		src.Addr[15] = byte(i)
		x := ipfix.Saved{Source: src, Version: d.Version, ID: d.ID, Domain: d.Domain, Options: d.Scopes > 0, Raw: ipfix.AppendTemplate(nil, d)}
		if !st.Restore(&x, 1) {
			panic("a template is refused")
		}
	}
	return st
}

// What one run learned, the next one knows. A file that is damaged is put aside, with its name in the log, and the run goes on.
func TestTemplatesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ipfix.templates")
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	first := someTemplates(50)
	k, err := openTemplates(file, first, 1, log)
	if err != nil {
		t.Fatal(err)
	}
	k.keep(true)
	later := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	if k, err = openTemplates(file, later, 1, log); err != nil || logged.Len() > 0 {
		t.Fatal(err, logged.String())
	}
	same := func(a, b ipfix.Saved) bool {
		return a.Source == b.Source && a.Version == b.Version && a.ID == b.ID && a.Domain == b.Domain && a.Options == b.Options && bytes.Equal(a.Raw, b.Raw)
	}
	if got, want := later.Save(), first.Save(); len(want) != 50 || !slices.EqualFunc(got, want, same) {
		t.Errorf("%d templates, want %d", len(got), len(want))
	}
	// It is not written again without a change.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if k.keep(true); later.Changes() == 0 {
		t.Error("nothing was restored")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is written again, and nothing changed")
	}
	good := exporters.AppendTemplates(nil, first.Save())
	for name, b := range map[string][]byte{"cut": good[:len(good)-5], "another byte": append(append([]byte(nil), good[:100]...), append([]byte{good[100] ^ 1}, good[101:]...)...), "empty": {}, "text": []byte("hello")} {
		logged.Reset()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openTemplates(file, ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{}), 1, log); err != nil || !strings.Contains(logged.String(), file) {
			t.Errorf("%s: %v, %s", name, err, logged.String())
		}
		if kept, err := os.ReadFile(file + ".bad"); err != nil || !bytes.Equal(kept, b) {
			t.Errorf("%s is not put aside: %v", name, err)
		}
	}
	if k, err := openTemplates("", first, 1, log); k != nil || err != nil {
		t.Error("without a path:", k, err)
	}
	if got := templatesPath(&exporters.IPFIX{}, "/spool/collector.state"); got != "/spool/ipfix.templates" {
		t.Error(got)
	}
}

// Whatever a file holds, it is read or refused, and what was read is written alike.
func FuzzReadTemplates(f *testing.F) {
	f.Add(exporters.AppendTemplates(nil, someTemplates(3).Save()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, exporters.SumTemplates(b)} {
			list, err := exporters.ReadTemplates(b)
			if err != nil {
				continue
			}
			if got := exporters.AppendTemplates(nil, list); !bytes.Equal(got, b) {
				t.Fatalf("%x is written as %x", b, got)
			}
			st := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
			for i := range list {
				st.Restore(&list[i], 1)
			}
		}
	})
}

// A template is in the file without a tick of the collector, and so is one that comes while the file is written.
func TestTemplatesAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ipfix.templates")
	store := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	k, err := openTemplates(file, store, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var followed sync.WaitGroup
	followed.Go(func() { k.watch(ctx) })
	all := someTemplates(50).Save()
	for i := range all {
		if !store.Restore(&all[i], 1) {
			t.Fatal("a template is refused")
		}
		if i%10 == 9 {
			testkit.Until(t, "the file has the templates", func() bool {
				list, err := readTemplates(file)
				return err == nil && len(list) == i+1
			})
		}
	}
	cancel()
	followed.Wait()
}
