package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/decode/ipfix"
)

// templates keeps the templates of IPFIX in a file, or nothing if it is nil. Many exporters send templates once, and
// after a restart their data could not be decoded.
type templates struct {
	path  string
	store *ipfix.Store
	saved uint64 // what was written, as [ipfix.Store.Changes] counts
	log   *slog.Logger
	write chan struct{} // holds one while the file is written
}

// templatesPath is the path by the settings: beside the state file, "" without one.
func templatesPath(c *exporters.IPFIX, state string) string {
	if c.TemplatesFile != "" || state == "" {
		return c.TemplatesFile
	}
	return filepath.Join(filepath.Dir(state), "ipfix.templates")
}

// openTemplates reads what an earlier run kept. A file that is none is put aside.
func openTemplates(path string, store *ipfix.Store, now int64, log *slog.Logger) (*templates, error) {
	if path == "" || store == nil {
		return nil, nil
	}
	k := &templates{path: path, store: store, log: log, write: make(chan struct{}, 1)}
	stores.Tidy(path, log)
	list, err := readTemplates(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err == nil:
		refused := 0
		for i := range list {
			if !store.Restore(&list[i], now) {
				refused++
			}
		}
		if refused > 0 {
			log.Warn("templates of IPFIX were refused: they break its rules, or ipfix.templates is smaller than before", "file", path, "refused", refused, "read", len(list))
		}
		k.saved = store.Changes()
	default:
		aside := path + ".bad"
		log.Error("the file of IPFIX templates is damaged, and is put aside; data waits until exporters send templates again", "file", path, "aside", aside, "error", err.Error())
		if err := os.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("ipfix.templates_file: %w", err)
		}
	}
	return k, nil
}

func readTemplates(path string) ([]ipfix.Saved, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, exporters.TemplatesMost+1))
	if err != nil {
		return nil, err
	}
	if len(b) > exporters.TemplatesMost {
		return nil, fmt.Errorf("it is longer than %d MB", exporters.TemplatesMost>>20)
	}
	return exporters.ReadTemplates(b)
}

// rest is how long a write of the file is followed by none, so that a burst of new templates costs few.
const rest = 20 * time.Millisecond

// watch writes the file as soon as a template is new, until ctx ends. Data decoded with the template soon reaches a
// store, and a process that is killed then still has the template at its next start.
func (k *templates) watch(ctx context.Context) {
	if k == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.store.Fresh():
		}
		k.keep(true)
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// keep writes the file if templates changed, beside the caller. With wait it returns when that is done.
func (k *templates) keep(wait bool) {
	if k == nil {
		return
	}
	if wait {
		k.write <- struct{}{}
	} else {
		select {
		case k.write <- struct{}{}:
		default: // the disk is slow
			return
		}
	}
	changes := k.store.Changes()
	if changes == k.saved {
		<-k.write
		return
	}
	done := func() {
		defer func() { <-k.write }()
		if err := stores.ReplaceFile(k.path, exporters.AppendTemplates(nil, k.store.Save())); err != nil {
			k.log.Error("templates of IPFIX are not kept", "file", k.path, "error", err.Error())
			return
		}
		k.saved = changes
	}
	if wait {
		done()
	} else {
		go done()
	}
}
