package p4rt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/p4"
)

// step is an update on its way.
type step struct {
	at    int // in the list of the caller
	level int // updates of one level do not rest on each other
	made  *p4pb.Update
}

// prepare sorts updates. If an update is wrong in itself, none is sent, and errs has the reasons.
func prepare(x *Info, updates []Update, owner string) (steps []step, errs []error) {
	steps = make([]step, len(updates))
	seen := make(map[string]bool, len(updates))
	for i := range updates {
		u := &updates[i]
		e := u.Entry
		if e.Owner == "" {
			e.Owner = owner
		}
		made, err := x.update(u.Op, &e)
		if key := e.Key(); err == nil && seen[key] {
			err = fmt.Errorf("table %s: %w", e.Table, errTwice)
		} else {
			seen[key] = true
		}
		if err != nil && errs == nil {
			errs = make([]error, len(updates))
		}
		if err != nil {
			errs[i] = err
		}
		steps[i] = step{at: i, level: x.level(u.Op, e.Table), made: made}
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i] = ErrSkipped
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.level, b.level) })
	return steps, errs
}

// level orders additions by table, and behind them deletions in the reverse order.
func (x *Info) level(op Op, name string) int {
	if op == Delete {
		return 2*len(x.tables) + 2 - x.order[name]
	}
	return x.order[name]
}

// update makes what P4Runtime has for an update. Default actions are never added or gone: they change, or are those of the
// program again.
func (x *Info) update(op Op, e *p4.Entry) (*p4pb.Update, error) {
	if op < Insert || op > Delete {
		return nil, fmt.Errorf("table %s: %v: %w", e.Table, op, p4.ErrInvalid)
	}
	entity, err := x.encode(e, op != Delete)
	if err != nil {
		return nil, err
	}
	kind := [...]p4pb.Update_Type{Insert: p4pb.Update_INSERT, Modify: p4pb.Update_MODIFY, Delete: p4pb.Update_DELETE}[op]
	if e.Default() && entity.GetTableEntry() != nil {
		kind = p4pb.Update_MODIFY
	}
	return &p4pb.Update{Type: kind, Entity: entity}, nil
}

// Write implements [Installer]. A request holds updates of one level alone, since a switch may carry out those of a request
// in any order. An update that is wrong in itself keeps all from being sent.
func (c *Client) Write(ctx context.Context, updates []Update) ([]error, error) {
	if len(updates) == 0 {
		return nil, nil
	}
	steps, errs := prepare(c.info, updates, c.cfg.Owner)
	if errs != nil {
		return errs, nil
	}
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := c.ready(ctx, true); err != nil {
		return nil, err
	}
	errs = make([]error, len(updates))
	failed, i := false, 0
	var err error
	for i < len(steps) && err == nil && (!failed || steps[i].level == steps[i-1].level) {
		n := c.batch(steps[i:])
		list := make([]*p4pb.Update, n)
		for k, s := range steps[i : i+n] {
			list[k] = s.made
		}
		var refused []error
		refused, err = c.request(ctx, list)
		c.explain(ctx, list, refused)
		for k, s := range steps[i : i+n] {
			if refused != nil {
				errs[s.at] = refused[k]
			}
			failed = failed || errs[s.at] != nil
		}
		i += n
	}
	for _, s := range steps[i:] {
		errs[s.at], failed = ErrSkipped, true
	}
	if !failed {
		errs = nil
	}
	return errs, err
}

// explain checks whether tables are full to which entries could not be added for an unknown reason. BMv2 never reports
// a full table.
func (c *Client) explain(ctx context.Context, updates []*p4pb.Update, refused []error) {
	full := map[uint32]bool{} // by table
	for i, err := range refused {
		reported, ok := err.(*switchError)
		id := updates[i].GetEntity().GetTableEntry().GetTableId()
		t := c.info.byID[id]
		if !ok || reported.Code != codes.Unknown || t == nil || updates[i].GetType() != p4pb.Update_INSERT {
			continue
		}
		if _, known := full[id]; !known {
			n := 0
			ask := &p4pb.Entity{Entity: &p4pb.Entity_TableEntry{TableEntry: &p4pb.TableEntry{TableId: id}}}
			err := c.read(ctx, []*p4pb.Entity{ask}, func(m *p4pb.Entity) error {
				if n++; n > c.cfg.maxEntries {
					return badAnswer("more than %d entries", c.cfg.maxEntries)
				}
				return nil
			})
			full[id] = err == nil && n >= t.Size
		}
		reported.full = full[id]
	}
}

// batch returns how many updates go into the next request.
func (c *Client) batch(steps []step) int {
	n, size := 0, 0
	for n < len(steps) && n < c.cfg.batchUpdates && steps[n].level == steps[0].level {
		size += proto.Size(steps[n].made) + 8
		if n > 0 && size > c.cfg.batchBytes {
			break
		}
		n++
	}
	return n
}

// request sends one request.
func (c *Client) request(ctx context.Context, updates []*p4pb.Update) ([]error, error) {
	ctx, cancel := c.timed(ctx)
	defer cancel()
	_, err := c.rpc.Write(ctx, &p4pb.WriteRequest{DeviceId: c.cfg.Device, Role: c.cfg.role, ElectionId: c.election(), Updates: updates})
	if err == nil {
		return nil, nil
	}
	errs, err := c.refused(err, len(updates))
	var none *PipelineError
	if errors.As(err, &none) {
		c.pipeline(err)
	}
	return errs, err
}

// refused reads why a request of n updates failed. The details of the status have an error for each update, also for
// those that were carried out. A request of one update may have its error in the status itself, as from BMv2 for a
// request that it cannot read.
func (c *Client) refused(err error, n int) (errs []error, why error) {
	same := func(e error) []error { return slices.Repeat([]error{e}, n) }
	s, _ := status.FromError(err)
	details := s.Proto().GetDetails() // not s.Details: a detail that cannot be read is an error here
	if len(details) == 0 {
		why = c.failure(err)
		switch code := s.Code(); {
		case code == codes.PermissionDenied, code == codes.Unauthenticated, code == codes.FailedPrecondition:
			return same(ErrSkipped), why
		case n == 1 && code != codes.Unavailable && code != codes.DeadlineExceeded && code != codes.Canceled && code != codes.Internal:
			return []error{why}, nil
		}
		return same(ErrUnknown), why
	}
	if len(details) != n {
		return same(ErrUnknown), badAnswer("%d errors for %d updates", len(details), n)
	}
	errs = make([]error, n)
	bad := 0
	for i, d := range details {
		var e p4pb.Error
		if err := d.UnmarshalTo(&e); err != nil {
			return same(ErrUnknown), badAnswer("an error of update %d that is none", i)
		}
		if code := codes.Code(e.GetCanonicalCode()); code != codes.OK {
			errs[i] = &switchError{Code: code, Message: cut(e.GetMessage()), Space: cut(e.GetSpace()), Number: e.GetCode()}
			bad++
		}
	}
	if bad == 0 {
		return same(ErrUnknown), badAnswer("it refuses a request, and none of its %d updates", n)
	}
	return errs, nil
}
