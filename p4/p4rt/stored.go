package p4rt

import (
	"context"

	"github.com/hopscope/hopscope/p4"
)

// Stored writes the tables of a switch of this process, such as an emulated one. Entries have the owner of the update.
type Stored struct {
	info  *Info
	visit func(do func(*p4.Store))
}

var _ Installer = (*Stored)(nil)

// NewStored makes an installer. The function visit calls do with the tables while nothing else reads or writes them.
func NewStored(info *Info, visit func(do func(*p4.Store))) *Stored { return &Stored{info, visit} }

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
