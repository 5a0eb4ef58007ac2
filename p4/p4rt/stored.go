package p4rt

import (
	"context"
	"fmt"

	"github.com/hopscope/hopscope/p4"
)

// Stored writes the tables of a switch of this process, such as an emulated one. Entries have the owner of the update.
type Stored struct {
	info  *Info
	count func(name string, cell int) uint64
	visit func(do func(*p4.Store))
}

var (
	_ Installer = (*Stored)(nil)
	_ Counting  = (*Stored)(nil)
)

// NewStored makes an installer. The function visit calls do with the tables while nothing else reads or writes them, and
// counters; count returns the packets in a cell of a counter.
func NewStored(info *Info, count func(name string, cell int) uint64, visit func(do func(*p4.Store))) *Stored {
	return &Stored{info, count, visit}
}

// Counters implements [Counting]. Bytes are 0.
func (s *Stored) Counters(ctx context.Context, name string) (cells []counter, err error) {
	info := s.info.counters[name]
	if info == nil {
		return nil, fmt.Errorf("counter %s: the program has none", name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.visit(func(*p4.Store) {
		for cell := range info.GetSize() {
			cells = append(cells, counter{Index: cell, Packets: int64(s.count(name, int(cell)))})
		}
	})
	return cells, nil
}

// Read implements [Installer].
func (s *Stored) Read(ctx context.Context, tables ...string) (all []p4.Entry, err error) {
	which, err := s.info.named(tables)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	s.visit(func(t *p4.Store) {
		for _, x := range which {
			all = append(all, t.Read(x.Name)...)
		}
	})
	return all, nil
}

// Write implements [Installer].
func (s *Stored) Write(ctx context.Context, updates []Update) (errs []error, err error) {
	for i := range updates {
		if err := checkOwner(updates[i].Entry.Owner); err != nil {
			return nil, err
		}
	}
	steps, errs := prepare(s.info, updates, "")
	if errs != nil {
		return errs, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.visit(func(t *p4.Store) { errs = carry(t, steps, updates, "") })
	return errs, nil
}
