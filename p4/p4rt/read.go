package p4rt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/hopscope/hopscope/p4"
)

// Read implements [Installer].
func (c *Client) Read(ctx context.Context, tables ...string) ([]p4.Entry, error) {
	which, err := c.info.named(tables)
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx, false); err != nil {
		return nil, err
	}
	var ask []*p4pb.Entity
	for _, t := range which {
		if t.Name == cloneTable {
			ask = append(ask, cloneEntity(&p4pb.CloneSessionEntry{}))
			continue
		}
		wanted := func(m *p4pb.TableEntry) *p4pb.Entity {
			return &p4pb.Entity{Entity: &p4pb.Entity_TableEntry{TableEntry: m}}
		}
		if len(t.Key) > 0 {
			ask = append(ask, wanted(&p4pb.TableEntry{TableId: t.id}))
		}
		ask = append(ask, wanted(&p4pb.TableEntry{TableId: t.id, IsDefaultAction: true}))
	}
	found := make(map[string][]p4.Entry, len(which)) // by table
	seen := map[string]bool{}
	err = c.read(ctx, ask, func(m *p4pb.Entity) error {
		if t := m.GetTableEntry(); t != nil && t.GetIsDefaultAction() && t.GetAction() == nil {
			return nil // the table has none
		}
		e, err := c.info.decode(m)
		if err != nil {
			return err
		}
		key := e.Key()
		switch {
		case seen[key]:
			return badAnswer("the same entry twice: %s", cut(e.String()))
		case len(seen) == c.cfg.maxEntries:
			return badAnswer("more than %d entries", c.cfg.maxEntries)
		case !slices.ContainsFunc(which, func(t *tableInfo) bool { return t.Name == e.Table }):
			return badAnswer("an entry of table %s, which was not asked for", e.Table)
		}
		seen[key] = true
		c.owned(&e)
		found[e.Table] = append(found[e.Table], e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]p4.Entry, 0, len(seen))
	for _, t := range which {
		list := found[t.Name]
		slices.SortStableFunc(list, func(a, b p4.Entry) int { // a default action comes last
			switch {
			case a.Default() == b.Default():
				return 0
			case a.Default():
				return 1
			}
			return -1
		})
		all = append(all, list...)
	}
	return all, nil
}

// owned sets the owner of a clone session of this controller.
func (c *Client) owned(e *p4.Entry) {
	if e.Table != cloneTable || c.cfg.ownSessions == [2]uint32{} {
		return
	}
	if id := uint32(e.Match[0].Value.Uint64()); id >= c.cfg.ownSessions[0] && id <= c.cfg.ownSessions[1] {
		e.Owner = c.cfg.Owner
	}
}

// named returns tables, or all of them.
func (x *Info) named(names []string) ([]*tableInfo, error) {
	if len(names) == 0 {
		return x.tables, nil
	}
	var list []*tableInfo
	for _, name := range names {
		t := x.byName[name]
		if t == nil {
			return nil, fmt.Errorf("table %s: the program has none: %w", name, p4.ErrInvalid)
		}
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list, nil
}

// read requests entities, and passes each of the answer to handle.
func (c *Client) read(ctx context.Context, ask []*p4pb.Entity, handle func(*p4pb.Entity) error) error {
	ctx, cancel := c.timed(ctx)
	defer cancel()
	stream, err := c.rpc.Read(ctx, &p4pb.ReadRequest{DeviceId: c.cfg.Device, Role: c.cfg.role, Entities: ask})
	if err != nil {
		return c.failure(err)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			err = c.failure(err)
			var none *PipelineError
			if errors.As(err, &none) {
				c.pipeline(err)
			}
			return err
		}
		for _, x := range m.GetEntities() {
			if err := handle(x); err != nil {
				return err
			}
		}
	}
}
