package p4rt

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/p4"
)

// reconciled counts the entries that [Reconcile] found, and those that it changed unless it failed.
type reconciled struct {
	Adopted  int // were right already
	Inserted int
	Repaired int // had another action
	Removed  int // the controller's own, and not wanted any more
	Left     int // of others
}

// ErrForeign is an entry that is wanted where another controller has one of the same key that does something else.
var ErrForeign = errors.New("another controller has an entry with this key, and another action")

// errDiffers is a switch that took entries and does not have them when it is read again.
var errDiffers = errors.New("the switch took what was written, and reads back something else")

// ownedBy returns a test for entries that were written with an owner.
func ownedBy(owner string) func(*p4.Entry) bool {
	return func(e *p4.Entry) bool { return e.Owner == owner }
}

// Reconcile makes a switch hold the wanted entries, and no others of this controller. It reads first: nothing is
// written to a switch that is correct already. If ours is not nil, it decides which of the read entries belong to this
// controller. Those of others are left alone, and are an error if they are in the way. Wanted default actions are
// written even if others own them.
//
// Where something of others is in the way nothing is written. All errors of entries are joined. With any of them the switch is not
// what it should be, and the same call can be made again.
func Reconcile(ctx context.Context, in Installer, want []p4.Entry, ours func(*p4.Entry) bool) (*reconciled, error) {
	have, err := in.Read(ctx)
	if err != nil {
		return nil, err
	}
	r, updates, errs := difference(have, want, ours)
	if len(updates) == 0 || errs != nil {
		return r, errors.Join(errs...)
	}
	refused, err := in.Write(ctx, updates)
	for i, e := range refused {
		if e != nil {
			errs = append(errs, fmt.Errorf("%v %v: %w", updates[i].Op, &updates[i].Entry, e))
		}
	}
	if err != nil || errs != nil {
		return r, errors.Join(append(errs, err)...)
	}
	if have, err = in.Read(ctx); err != nil {
		return r, err
	}
	if _, left, _ := difference(have, want, ours); len(left) > 0 {
		return r, fmt.Errorf("%d entries, such as to %v %v: %w", len(left), left[0].Op, &left[0].Entry, errDiffers)
	}
	return r, nil
}

// difference returns the updates that turn the entries of a switch into the wanted ones. It also returns an error for
// each entry of others that is in the way.
func difference(have, want []p4.Entry, ours func(*p4.Entry) bool) (*reconciled, []Update, []error) {
	r := &reconciled{}
	var updates []Update
	var errs []error
	at, keys := make(map[string]*p4.Entry, len(have)), make([]string, len(have))
	for i := range have {
		keys[i] = have[i].Key()
		at[keys[i]] = &have[i]
	}
	wanted := make(map[string]bool, len(want))
	for i := range want {
		e := &want[i]
		key := e.Key()
		if wanted[key] {
			errs = append(errs, fmt.Errorf("%v: %w", e, errTwice))
			continue
		}
		wanted[key] = true
		switch old := at[key]; {
		case old == nil:
			r.Inserted++
			updates = append(updates, Update{Insert, *e})
		case old.SameAction(e):
			r.Adopted++
		case e.Default() || ours == nil || ours(old):
			r.Repaired++
			updates = append(updates, Update{Modify, *e})
		default:
			r.Left++
			errs = append(errs, fmt.Errorf("%v, where there is %v of %q: %w", e, old, old.Owner, ErrForeign))
		}
	}
	for i := range have {
		e := &have[i]
		switch {
		case wanted[keys[i]]:
		case ours != nil && ours(e):
			r.Removed++
			updates = append(updates, Update{Delete, *e})
		case !e.Default(): // else it is the program's
			r.Left++
		}
	}
	return r, updates, errs
}
